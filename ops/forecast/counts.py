"""What a stack takes of each limit, counted from its settings with the rules that the components use as well.

Each function yields what one stack takes, piece by piece; `limits.py` says of which limit.
`tests/unit/components/test_forecast.py` compares them with what the program registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, get_args

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity, DataPlaneIdentity, OptionalManagedIdentity, RoleGrant
from identity.credentials.renewal_date import earliest_age_when_due
from identity.credentials.schedule import SlotName
from identity.credentials.secret_tags import OWN_TAGS
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings
from identity.settings.schema.managed_identities import managed_identity_of
from identity.settings.scopes import control_plane_grant, hsm_keys, outermost, scope_ids
from ops.forecast.stack import ForecastStack

# Of a highly available control plane, kube-apiserver's Deployment; the others have two (openshift/hypershift
# support/controlplane-component/defaults.go, DefaultReplicas).
MOST_REPLICAS: Final = 3
# The longest credential document by bits of its key, in bytes of UTF-8, measured; and what the encodings make of it.
DOCUMENT_BYTES: Final = {2048: 4400, 3072: 5900, 4096: 7400}
ENCODED: Final = {"utf-8": 1.0, "base64": 4 / 3, "hex": 2.0}
# Registering a certificate and removing another one, each a PATCH of the application.
_WRITES_OF_A_RENEWAL: Final = 2
# An application and its service principal.
_OBJECTS_OF_AN_APPLICATION: Final = 2
# Managed resource group, network's and security group's (identity/infrastructure.py).
_CREATED_GROUPS: Final = 3
_TEN_YEARS: Final = timedelta(days=3650)
_TEN_SECONDS: Final = timedelta(seconds=10)


@dataclass(frozen=True)
class Taken:
    """`amount` of something at `holder`: a subscription, a vault, an identity.

    `cluster` is the hosted cluster that takes it, None if it is there without any.
    """

    holder: str
    amount: float
    cluster: str | None = None


def role_assignments(stack: ForecastStack) -> Iterator[Taken]:
    """Assignments at ARM: of identities, of the key-vault-user, and of the deployer where the stack gives it a role."""
    settings, holder = stack.settings, stack.subscription
    if settings.has_key_vault_user and not stack.reads_by_secret:
        yield Taken(holder, 1)
    cluster = settings.management_cluster
    if cluster is not None and cluster.create is not None and cluster.create.azure_rbac:
        yield Taken(holder, 1)
    for each in stack.clusters:
        for grant in _grants(stack, each):
            yield Taken(holder, len(outermost(scope_ids(settings, each, grant))), each.name)
        if stack.reads_by_secret:
            yield Taken(holder, len(_enabled(each)), each.name)
        attached = sum(row.attached_by is not None for row in each.optional_rows)
        yield Taken(holder, attached + (each.issuer == "create"), each.name)


def hsm_role_assignments(stack: ForecastStack) -> Iterator[Taken]:
    """Assignments inside of managed HSMs."""
    for cluster in stack.clusters:
        for grant in _grants(stack, cluster):
            for hsm, _ in hsm_keys(cluster, grant):
                yield Taken(f"managed HSM {hsm}", 1, cluster.name)


def applications(stack: ForecastStack) -> Iterator[Taken]:
    """Entra applications."""
    for cluster in stack.clusters:
        yield Taken(stack.tenant, len(_applications(cluster)), cluster.name)


def managed_identities(stack: ForecastStack) -> Iterator[Taken]:
    """User-assigned managed identities that the stack makes."""
    if stack.settings.has_key_vault_user and stack.settings.key_vault_user.source == "created":
        yield Taken(stack.tenant, 1)
    for cluster in stack.clusters:
        yield Taken(stack.tenant, len(cluster.federated_rows) + len(cluster.optional_rows), cluster.name)


def directory_objects(stack: ForecastStack) -> Iterator[Taken]:
    """Objects in the tenant: applications, their service principals, and those of managed identities."""
    yield from created_objects(stack)
    yield from managed_identities(stack)


def created_objects(stack: ForecastStack) -> Iterator[Taken]:
    """Objects that the deployer makes in Entra ID itself and owns."""
    for application in applications(stack):
        yield Taken(application.holder, application.amount * _OBJECTS_OF_AN_APPLICATION, application.cluster)


def renewal_writes(stack: ForecastStack) -> Iterator[Taken]:
    """Writes at Graph if every certificate is renewed in one run, as after a leak. Dates are spread (record 0001)."""
    for application in applications(stack):
        yield Taken(application.holder, application.amount * _WRITES_OF_A_RENEWAL, application.cluster)


def federated_credentials(stack: ForecastStack) -> Iterator[Taken]:
    """Federated credentials, by managed identity."""
    for cluster in stack.clusters:
        rows: tuple[DataPlaneIdentity | OptionalManagedIdentity, ...] = (
            *cluster.federated_rows,
            *cluster.optional_rows,
        )
        for row in rows:
            name = parse_arm_id(managed_identity_of(stack.settings, cluster, row)).name
            yield Taken(f"identity {name}", len(row.subjects), cluster.name)


def secrets(stack: ForecastStack) -> Iterator[Taken]:
    """Secrets that the stack writes into the vault; one that is only named has another owner."""
    for cluster in stack.clusters:
        written = sum(_writes_secret(cluster, row) for row in _enabled(cluster))
        key = cluster.signing_key
        if key is not None:
            written += len(key.published) if cluster.issuer == "create" else key.file is not None
        written += cluster.encryption_key_secret is not None
        yield Taken(stack.vault, written, cluster.name)


def vault_reads(stack: ForecastStack) -> Iterator[Taken]:
    """Reads in ten seconds: each poll, the CSI driver reads each secret once for each pod that mounts it."""
    for cluster in stack.clusters:
        yield Taken(stack.vault, mounted_secrets(stack, cluster) * (_TEN_SECONDS / stack.poll), cluster.name)


def subscription_reads(stack: ForecastStack) -> Iterator[Taken]:
    """The same of all vaults of the subscription."""
    for read in vault_reads(stack):
        yield Taken(stack.subscription, read.amount, read.cluster)


def mounted_secrets(stack: ForecastStack, cluster: HostedClusterSettings) -> int:
    """Secrets mounted in pods, at most one for each pod that has it."""
    if not stack.settings.makes_cluster_side(cluster):
        return MOST_REPLICAS * sum(len(row.mounts) for row in _enabled(cluster))
    probes = sum(len(row.mounts) for row in _enabled(cluster))
    return probes + sum(workload.replicas * len(workload.identities) for workload in cluster.workloads)


def issuer_accounts(stack: ForecastStack) -> Iterator[Taken]:
    """Storage accounts of OIDC issuers."""
    for cluster in stack.clusters:
        holder = f"{stack.subscription}, {stack.settings.location}"
        yield Taken(holder, int(cluster.issuer == "create"), cluster.name)


def resource_groups(stack: ForecastStack) -> Iterator[Taken]:
    """Resource groups of created infrastructure."""
    for cluster in stack.clusters:
        yield Taken(stack.subscription, _CREATED_GROUPS * (cluster.infrastructure == "create"), cluster.name)


def secret_bytes(stack: ForecastStack) -> Iterator[Taken]:
    """Bytes of each secret whose document the stack issues: a maximum."""
    size = DOCUMENT_BYTES[stack.settings.credentials.key_size]
    for cluster in stack.clusters:
        for row in _applications(cluster):
            identity = cluster.identity(row)
            yield Taken(f"secret {identity.secret_name}", size * ENCODED[identity.object_encoding], cluster.name)


def secret_versions(stack: ForecastStack) -> Iterator[Taken]:
    """Versions that a secret has after ten years of renewals, if its identity is always the first of all to be due."""
    credentials = stack.settings.credentials
    if any(_applications(cluster) for cluster in stack.clusters):
        oftenest = earliest_age_when_due(credentials.lifetime_days, credentials.renew_before_days)
        yield Taken(stack.vault, 1 + _TEN_YEARS // oftenest)


def secret_tags(stack: ForecastStack) -> Iterator[Taken]:
    """Tags of a secret: the stack's and the credential's own."""
    yield Taken(stack.vault, len(stack.settings.tags) + len(OWN_TAGS))


def certificates(stack: ForecastStack) -> Iterator[Taken]:
    """Entries in an application's manifest: a certificate for each slot, and the tags with its name and owner id."""
    for cluster in stack.clusters:
        if _applications(cluster):
            yield Taken(f"each application of {cluster.name}", len(get_args(SlotName)) + 2, cluster.name)


def address_rules(stack: ForecastStack) -> Iterator[Taken]:
    """Addresses that the vault's firewall allows."""
    if stack.settings.vault is not None:
        yield Taken(stack.vault, len(stack.settings.vault.allowed_ip_ranges))


def subnet_rules(stack: ForecastStack) -> Iterator[Taken]:
    """Subnets that the vault's firewall allows."""
    if stack.settings.vault is not None:
        yield Taken(stack.vault, len(stack.settings.vault.allowed_subnet_ids))


def _enabled(cluster: HostedClusterSettings) -> list[ControlPlaneIdentity]:
    return [row for row in CONTROL_PLANE if cluster.identity(row).enabled]


def _applications(cluster: HostedClusterSettings) -> list[ControlPlaneIdentity]:
    return [row for row in _enabled(cluster) if cluster.identity(row).source == "entra-application"]


def _writes_secret(cluster: HostedClusterSettings, row: ControlPlaneIdentity) -> bool:
    credential = cluster.identity(row).credential
    return credential is None or credential.secret_name is None


def _grants(stack: ForecastStack, cluster: HostedClusterSettings) -> list[RoleGrant]:
    return [
        *(control_plane_grant(stack.settings, cluster, row) for row in _enabled(cluster)),
        *(row.grant(stack.settings.roles) for row in cluster.federated_rows),
        *(grant for row in cluster.optional_rows for grant in row.grants),
    ]
