"""The table of limits: how much there is, of what, who says so, and how a stack's part of it is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from identity.credentials.document import MAX_BYTES
from identity.credentials.secret_tags import MOST_TAGS
from ops.forecast import counts
from ops.forecast.counts import Taken
from ops.forecast.stack import ForecastStack


@dataclass(frozen=True)
class Page:
    """A page of Microsoft's documentation: its title, and its address without the scheme."""

    title: str
    address: str


_LEARN: Final = "learn.microsoft.com"
_VAULT: Final = Page("Azure Key Vault service limits", f"{_LEARN}/azure/key-vault/general/service-limits")
_SECRETS: Final = Page("About Azure Key Vault secrets", f"{_LEARN}/azure/key-vault/secrets/about-secrets")
_FIREWALL: Final = Page(
    "Configure network security for Key Vault", f"{_LEARN}/azure/key-vault/general/network-security"
)
_ENTRA: Final = Page(
    "Microsoft Entra service limits", f"{_LEARN}/entra/identity/users/directory-service-limits-restrictions"
)
_SUBSCRIPTION: Final = Page(
    "Azure subscription and service limits",
    f"{_LEARN}/azure/azure-resource-manager/management/azure-subscription-service-limits",
)


@dataclass(frozen=True, kw_only=True)
class ServiceLimit:
    """One limit. `most` of `name` exist for each holder of what `count` yields; `source` is the page that says so.

    With `grows` clusters add up at a holder. Without it a holder belongs to one cluster or to none, and more clusters
    change nothing. `condition` says for whom alone it is a limit, None if it stops everybody: the configuration does
    not tell. `seconds`: the time within which there may be so many, None if there is none.
    """

    key: str  # in the JSON document
    name: str
    most: int
    source: Page
    count: Callable[[ForecastStack], Iterator[Taken]]
    grows: bool = True
    seconds: int | None = None
    condition: str | None = None


ROLE_ASSIGNMENTS: Final = ServiceLimit(
    key="roleAssignments",
    name="role assignments of a subscription",
    most=4000,
    source=Page("Troubleshoot Azure RBAC limits", f"{_LEARN}/azure/role-based-access-control/troubleshoot-limits"),
    count=counts.role_assignments,
)
# https://github.com/kubernetes-sigs/secrets-store-csi-driver/issues/1483: a throttled vault blocks new pods as well.
VAULT_READS: Final = ServiceLimit(
    key="vaultReads",
    name="reads of a vault in 10 s",
    most=4000,
    source=_VAULT,
    count=counts.vault_reads,
    seconds=10,
)
RENEWAL_WRITES: Final = ServiceLimit(
    key="renewalWrites",
    name="writes at Graph in 150 s",
    most=3000,
    source=Page("Microsoft Graph throttling limits", f"{_LEARN}/graph/throttling-limits"),
    count=counts.renewal_writes,
    seconds=150,
    condition="a run that renews every certificate at once, and waits where Graph throttles it",
)

LIMITS: Final = (
    ROLE_ASSIGNMENTS,
    VAULT_READS,
    ServiceLimit(
        key="subscriptionVaultReads",
        name="reads of all vaults of a subscription in 10 s",
        most=5 * VAULT_READS.most,
        source=_VAULT,
        count=counts.subscription_reads,
    ),
    ServiceLimit(
        key="directoryObjects",
        name="objects of a tenant without a verified domain",
        most=50_000,
        source=_ENTRA,
        count=counts.directory_objects,
    ),
    ServiceLimit(
        key="createdObjects",
        name="objects that one owner has made",
        most=250,
        source=_ENTRA,
        count=counts.created_objects,
        condition="a user without a role in Entra ID who deploys; a service principal is not limited",
    ),
    RENEWAL_WRITES,
    ServiceLimit(
        key="hsmRoleAssignments",
        name="role assignments of a managed HSM",
        most=50,
        source=_VAULT,
        count=counts.hsm_role_assignments,
    ),
    ServiceLimit(
        key="issuerAccounts",
        name="storage accounts of a region",
        most=250,
        source=_SUBSCRIPTION,
        count=counts.issuer_accounts,
    ),
    ServiceLimit(
        key="resourceGroups",
        name="resource groups of a subscription",
        most=980,
        source=_SUBSCRIPTION,
        count=counts.resource_groups,
    ),
    ServiceLimit(
        key="federatedCredentials",
        name="federated credentials of an identity",
        most=20,
        source=Page(
            "Workload identity federation: considerations",
            f"{_LEARN}/entra/workload-id/workload-identity-federation-considerations",
        ),
        count=counts.federated_credentials,
        grows=False,
    ),
    ServiceLimit(
        key="secretBytes",
        name="bytes of a secret",
        most=MAX_BYTES,
        source=_SECRETS,
        count=counts.secret_bytes,
        grows=False,
    ),
    ServiceLimit(
        key="secretTags",
        name="tags of a secret",
        most=MOST_TAGS,
        source=_SECRETS,
        count=counts.secret_tags,
        grows=False,
    ),
    ServiceLimit(
        key="secretVersions",
        name="versions of a secret after ten years (backup)",
        most=500,
        source=_VAULT,
        count=counts.secret_versions,
        grows=False,
    ),
    ServiceLimit(
        key="certificates",
        name="entries of an application's manifest",
        most=1200,
        source=_ENTRA,
        count=counts.certificates,
        grows=False,
    ),
    ServiceLimit(
        key="addressRules",
        name="addresses in a vault's firewall",
        most=1000,
        source=_FIREWALL,
        count=counts.address_rules,
        grows=False,
    ),
    ServiceLimit(
        key="subnetRules",
        name="subnets in a vault's firewall",
        most=200,
        source=_FIREWALL,
        count=counts.subnet_rules,
        grows=False,
    ),
)
"""Every limit that is known to matter."""
