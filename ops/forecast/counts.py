"""A stack's usage of each limit, counted from its settings with the components' own rules.

Each function yields the parts of one stack's usage of a limit in `limits.py`. `tests/unit/components/test_forecast.py`
compares them with the resources that the program registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from identity.catalogue_rows import ControlPlaneIdentity, DataPlaneIdentity, OptionalManagedIdentity
from identity.credentials.renewal_date import earliest_age_when_due
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings
from identity.settings.schema.managed_identities import managed_identity_of
from identity.settings.scopes import grants_of, hsm_keys, outermost, scope_ids
from ops.forecast.stack import ForecastStack

# kube-apiserver's, in a highly available control plane; other Deployments have two (openshift/hypershift
# support/controlplane-component/defaults.go, DefaultReplicas).
MOST_REPLICAS: Final = 3
# Registering a certificate and removing another one, each a PATCH of the application.
_WRITES_OF_A_RENEWAL: Final = 2
# An application and its service principal.
_OBJECTS_OF_AN_APPLICATION: Final = 2
# Managed resource group, network's and security group's (identity/infrastructure.py).
_CREATED_GROUPS: Final = 3
_TEN_YEARS: Final = timedelta(days=3650)
_TEN_SECONDS: Final = timedelta(seconds=10)


@dataclass(frozen=True)
class Usage:
    """A usage of `amount` at `holder`: a subscription, a vault, an identity.

    `cluster` is the hosted cluster that causes it, None for a usage without hosted clusters.
    """

    holder: str
    amount: float
    cluster: str | None = None


def role_assignments(stack: ForecastStack) -> Iterator[Usage]:
    """Assignments in ARM: of identities, of the key-vault-user, and of the deployer if the stack gives it a role."""
    settings, holder = stack.settings, stack.subscription
    if settings.has_key_vault_user and not stack.reads_by_secret:
        yield Usage(holder, 1)
    management = settings.management_cluster
    if management is not None and management.create is not None and management.create.azure_rbac:
        yield Usage(holder, 1)
    for cluster in stack.clusters:
        for grant in grants_of(stack.settings, cluster):
            yield Usage(holder, len(outermost(scope_ids(settings, cluster, grant))), cluster.name)
        if stack.reads_by_secret:
            yield Usage(holder, len(cluster.enabled_rows), cluster.name)
        attached = sum(row.attached_by is not None for row in cluster.optional_rows)
        yield Usage(holder, attached + (cluster.issuer == "create"), cluster.name)


def hsm_role_assignments(stack: ForecastStack) -> Iterator[Usage]:
    """Assignments inside of managed HSMs."""
    for cluster in stack.clusters:
        for grant in grants_of(stack.settings, cluster):
            for hsm, _ in hsm_keys(cluster, grant):
                yield Usage(f"managed HSM {hsm}", 1, cluster.name)


def applications(stack: ForecastStack) -> Iterator[Usage]:
    """Entra applications."""
    for cluster in stack.clusters:
        yield Usage(stack.tenant, len(_applications(cluster)), cluster.name)


def managed_identities(stack: ForecastStack) -> Iterator[Usage]:
    """User-assigned managed identities that the stack creates."""
    if stack.settings.has_key_vault_user and stack.settings.key_vault_user.source == "created":
        yield Usage(stack.tenant, 1)
    for cluster in stack.clusters:
        yield Usage(stack.tenant, len(cluster.federated_rows) + len(cluster.optional_rows), cluster.name)


def directory_objects(stack: ForecastStack) -> Iterator[Usage]:
    """Objects in the tenant: applications, their service principals, and those of managed identities."""
    yield from created_objects(stack)
    yield from managed_identities(stack)


def created_objects(stack: ForecastStack) -> Iterator[Usage]:
    """Objects that the deployer creates in Entra ID and owns."""
    for application in applications(stack):
        yield Usage(application.holder, application.amount * _OBJECTS_OF_AN_APPLICATION, application.cluster)


def renewal_writes(stack: ForecastStack) -> Iterator[Usage]:
    """Writes in Graph if one run renews every certificate, as after a leak; regular dates are spread (record 0001)."""
    for application in applications(stack):
        yield Usage(application.holder, application.amount * _WRITES_OF_A_RENEWAL, application.cluster)


def federated_credentials(stack: ForecastStack) -> Iterator[Usage]:
    """Federated credentials, by managed identity."""
    for cluster in stack.clusters:
        rows: tuple[DataPlaneIdentity | OptionalManagedIdentity, ...] = (
            *cluster.federated_rows,
            *cluster.optional_rows,
        )
        for row in rows:
            name = parse_arm_id(managed_identity_of(stack.settings, cluster, row)).name
            yield Usage(f"identity {name}", len(row.subjects), cluster.name)


def vault_reads(stack: ForecastStack) -> Iterator[Usage]:
    """Reads in ten seconds: at each poll the CSI driver reads a secret once for each pod that mounts it."""
    for cluster in stack.clusters:
        yield Usage(stack.vault, mounted_secrets(stack, cluster) * (_TEN_SECONDS / stack.poll), cluster.name)


def subscription_reads(stack: ForecastStack) -> Iterator[Usage]:
    """The same of all vaults of the subscription."""
    for read in vault_reads(stack):
        yield Usage(stack.subscription, read.amount, read.cluster)


def mounted_secrets(stack: ForecastStack, cluster: HostedClusterSettings) -> int:
    """The number of mounts of secrets in pods."""
    if not stack.settings.makes_cluster_side(cluster):
        return MOST_REPLICAS * sum(len(row.mounts) for row in cluster.enabled_rows)
    probes = sum(len(row.mounts) for row in cluster.enabled_rows)
    return probes + sum(workload.replicas * len(workload.identities) for workload in cluster.workloads)


def issuer_accounts(stack: ForecastStack) -> Iterator[Usage]:
    """Storage accounts of OIDC issuers."""
    for cluster in stack.clusters:
        holder = f"{stack.subscription}, {stack.settings.location}"
        yield Usage(holder, int(cluster.issuer == "create"), cluster.name)


def resource_groups(stack: ForecastStack) -> Iterator[Usage]:
    """Resource groups of created infrastructure."""
    for cluster in stack.clusters:
        yield Usage(stack.subscription, _CREATED_GROUPS * (cluster.infrastructure == "create"), cluster.name)


def secret_versions(stack: ForecastStack) -> Iterator[Usage]:
    """Versions of a secret after ten years of renewals, if its identity is always the first to be due."""
    credentials = stack.settings.credentials
    if any(_applications(cluster) for cluster in stack.clusters):
        oftenest = earliest_age_when_due(credentials.lifetime_days, credentials.renew_before_days)
        yield Usage(stack.vault, 1 + _TEN_YEARS // oftenest)


def address_rules(stack: ForecastStack) -> Iterator[Usage]:
    """Addresses that the vault's firewall allows."""
    if stack.settings.vault is not None:
        yield Usage(stack.vault, len(stack.settings.vault.allowed_ip_ranges))


def subnet_rules(stack: ForecastStack) -> Iterator[Usage]:
    """Subnets that the vault's firewall allows."""
    if stack.settings.vault is not None:
        yield Usage(stack.vault, len(stack.settings.vault.allowed_subnet_ids))


def _applications(cluster: HostedClusterSettings) -> list[ControlPlaneIdentity]:
    return [row for row in cluster.enabled_rows if cluster.identity(row).source == "entra-application"]
