"""The table of limits: each limit's maximum, its source, and how a stack's usage is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ops.forecast import counts
from ops.forecast.counts import Usage
from ops.forecast.stack import ForecastStack


@dataclass(frozen=True)
class Page:
    """A page of Microsoft's documentation: its title, and its address without the scheme."""

    title: str
    address: str


_LEARN: Final = "learn.microsoft.com"
_VAULT: Final = Page("Azure Key Vault service limits", f"{_LEARN}/azure/key-vault/general/service-limits")
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


@dataclass(frozen=True)
class ServiceLimit:
    """One limit: each holder that `count` yields may have `maximum` of `name`, as the page `source` says.

    `key` is its key in the JSON document. With `grows` the usage of clusters adds up at a holder. Otherwise a holder
    belongs to one cluster at most. The limit holds under the `condition` alone, None: always. `seconds` is the period
    of a rate, None for other limits.
    """

    key: str
    name: str
    maximum: int
    source: Page
    count: Callable[[ForecastStack], Iterator[Usage]]
    grows: bool = field(default=True, kw_only=True)
    seconds: int | None = field(default=None, kw_only=True)
    condition: str | None = field(default=None, kw_only=True)


ROLE_ASSIGNMENTS: Final = ServiceLimit(
    "roleAssignments",
    "role assignments of a subscription",
    4000,
    Page("Troubleshoot Azure RBAC limits", f"{_LEARN}/azure/role-based-access-control/troubleshoot-limits"),
    counts.role_assignments,
)
# https://github.com/kubernetes-sigs/secrets-store-csi-driver/issues/1483: a throttled vault blocks new pods as well.
VAULT_READS: Final = ServiceLimit(
    "vaultReads", "reads of a vault in 10 s", 4000, _VAULT, counts.vault_reads, seconds=10
)
RENEWAL_WRITES: Final = ServiceLimit(
    "renewalWrites",
    "writes at Graph in 150 s",
    3000,
    Page("Microsoft Graph throttling limits", f"{_LEARN}/graph/throttling-limits"),
    counts.renewal_writes,
    seconds=150,
    condition="a run that renews every certificate at once, which waits when Graph throttles it",
)
LIMITS: Final = (
    ROLE_ASSIGNMENTS,
    VAULT_READS,
    ServiceLimit(
        "subscriptionVaultReads",
        "reads of all vaults of a subscription in 10 s",
        5 * VAULT_READS.maximum,
        _VAULT,
        counts.subscription_reads,
    ),
    ServiceLimit(
        "directoryObjects", "objects of a tenant without a verified domain", 50_000, _ENTRA, counts.directory_objects
    ),
    ServiceLimit(
        "createdObjects",
        "objects that one owner has created",
        250,
        _ENTRA,
        counts.created_objects,
        condition="a user without a role in Entra ID who deploys; a service principal is not limited",
    ),
    RENEWAL_WRITES,
    ServiceLimit("hsmRoleAssignments", "role assignments of a managed HSM", 50, _VAULT, counts.hsm_role_assignments),
    ServiceLimit("issuerAccounts", "storage accounts of a region", 250, _SUBSCRIPTION, counts.issuer_accounts),
    ServiceLimit("resourceGroups", "resource groups of a subscription", 980, _SUBSCRIPTION, counts.resource_groups),
    ServiceLimit(
        "federatedCredentials",
        "federated credentials of an identity",
        20,
        Page(
            "Workload identity federation: considerations",
            f"{_LEARN}/entra/workload-id/workload-identity-federation-considerations",
        ),
        counts.federated_credentials,
        grows=False,
    ),
    ServiceLimit(
        "secretVersions",
        "versions of a secret after ten years (backup)",
        500,
        _VAULT,
        counts.secret_versions,
        grows=False,
    ),
    ServiceLimit("addressRules", "addresses in a vault's firewall", 1000, _FIREWALL, counts.address_rules, grows=False),
    ServiceLimit("subnetRules", "subnets in a vault's firewall", 200, _FIREWALL, counts.subnet_rules, grows=False),
)
"""Every limit that a stack can meet."""
