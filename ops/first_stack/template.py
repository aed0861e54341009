"""The file of a new stack on Azure, which creates as much as possible.

The engine also writes to the file (its encryption key, `pulumi config set`). It removes blank lines, moves a comment
at the end of a block into the next one, and writes a top-level boolean as a string. So every comment is above its key,
there are no blank lines, and top-level booleans are quoted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from identity.clouds import DEFAULT_CLOUD
from identity.naming import parse_arm_id
from identity.settings.rules.placeholders import SAMPLE_PREFIX
from identity.settings.schema.schema_node import ZERO_UUID

# Azure's limit for the names of vaults and of storage accounts.
_LONGEST_UNIQUE_NAME: Final = 24


class Side(StrEnum):
    """Who creates the control planes' SecretProviderClasses and pods: the values of `clusterSide`."""

    STACK = "stack"
    HYPERSHIFT = "hypershift"


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The values of a stack in `idstack init`.

    `management_cluster` is <resource group>/<name>, `dns_zone` the resource id of the public zone. `image` is the
    probe's, only with `clusterSide: stack`. The default of `backend` is the login's, that of `secrets_provider` a
    passphrase.
    """

    stack: str
    prefix: str
    location: str
    cluster: str
    side: Side
    management_cluster: str
    dns_zone: str
    tenant_id: str
    subscription_id: str
    image: str | None = None
    cloud: str = DEFAULT_CLOUD
    backend: str | None = None
    secrets_provider: str | None = None

    @property
    def resource_group(self) -> str:
        """The resource group of vault and identities."""
        return f"{self.prefix}-{self.stack}"

    @property
    def vault(self) -> str:
        """The vault's name, unique in Azure."""
        return f"kv-{self.prefix}-{self.stack}"

    @property
    def issuer(self) -> str:
        """The name of the issuer's storage account, unique in Azure."""
        return "".join(filter(str.isalnum, f"{self.prefix}{self.stack}{self.cluster}"))

    @property
    def too_long(self) -> str | None:
        """The first name that is too long for Azure; None without one."""
        return next((name for name in (self.vault, self.issuer) if len(name) > _LONGEST_UNIQUE_NAME), None)


SAMPLE: Final = Answers(
    stack="dev",
    prefix=SAMPLE_PREFIX,
    location="westeurope",
    cluster="hc1",
    side=Side.HYPERSHIFT,
    management_cluster=f"{SAMPLE_PREFIX}-aks/{SAMPLE_PREFIX}-aks",
    dns_zone=f"/subscriptions/{ZERO_UUID}/resourceGroups/dns/providers/Microsoft.Network/dnsZones/dev.example.com",
    tenant_id=ZERO_UUID,
    subscription_id=ZERO_UUID,
)


def stack_text(answers: Answers) -> str:
    """The text of `Pulumi.<stack>.yaml`."""
    return "\n".join(_lines(answers)) + "\n"


def _lines(answers: Answers) -> Iterator[str]:
    zone = parse_arm_id(answers.dns_zone)
    group, _, aks = answers.management_cluster.partition("/")
    yield f"# The stack {answers.stack} on Azure, as `idstack init {answers.stack}` writes it."
    yield "# docs/guides/first-stack.md has the steps to a first preview, docs/reference/configuration.md every key."
    if answers.secrets_provider is not None:
        yield "# The key that encrypts what is secret in the state."
        yield f"secretsprovider: {answers.secrets_provider}"
    yield "config:"
    yield "  # Providers are created explicitly; a default one would act with whatever login it finds."
    yield "  pulumi:disable-default-providers: [azure-native, azuread, kubernetes]"
    if answers.backend is not None:
        yield "  # Where the state is, for `make` and `idstack` alike."
        yield f"  idstack:backend: {answers.backend}"
    if answers.cloud != DEFAULT_CLOUD:
        yield f"  idstack:cloud: {answers.cloud}"
    yield "  # A run with a login to another tenant is refused."
    yield f"  idstack:tenantId: {answers.tenant_id}"
    yield f"  idstack:subscriptionId: {answers.subscription_id}"
    yield f"  idstack:location: {answers.location}"
    yield f"  # It must exist: az group create --name {answers.resource_group} --location {answers.location}"
    yield f"  idstack:resourceGroup: {answers.resource_group}"
    yield "  # So that `idstack down` may remove everything. Take it out before anybody depends on the stack."
    yield '  idstack:protect: "false"'
    if answers.side is Side.HYPERSHIFT:
        yield "  # HyperShift's operators make SecretProviderClasses, cloud configurations and pods."
        yield "  idstack:clusterSide: hypershift"
    else:
        yield "  # This stack makes SecretProviderClasses, cloud configurations, and pods that sign in."
        yield "  idstack:probe:"
        yield f"    image: {answers.image}"
    yield "  # The roles of production, which end at single resources."
    yield "  idstack:roles: builtin"
    yield "  # Every network reaches the vault, and roles alone decide who reads a secret. Deny needs the deployer and"
    yield "  # the nodes in allowedIpRanges and allowedSubnetIds. With purge protection the name is taken for 90 days."
    yield "  idstack:vault:"
    yield f"    name: {answers.vault}"
    yield "    purgeProtection: false"
    yield "    defaultAction: Allow"
    yield "  # It must exist, with the add-on azure-keyvault-secrets-provider, whose identity reads the vault."
    yield "  idstack:managementCluster:"
    yield f"    resourceGroup: {group}"
    yield f"    name: {aks}"
    yield "  idstack:hostedClusters:"
    yield f"    - name: {answers.cluster}"
    yield "      # The stack makes the OIDC issuer, in a storage account of this name."
    yield "      issuer: create"
    yield f"      issuerName: {answers.issuer}"
    yield "      # The stack makes resource groups, network, subnet, security group and the private DNS zone."
    yield "      infrastructure: create"
    yield "      # The public zone must exist."
    yield "      dns:"
    yield f"        baseDomain: {zone.name}"
    yield f"        publicZoneID: {answers.dns_zone}"
