"""Names that HyperShift and Azure derive by rule, and ARM ids."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Final

from identity.credentials.secret_tags import OWNER

# Tag of a managed identity that a stack made; its value is `stack_tag`'s.
STACK_TAG: Final = "idstack-stack"


def stack_tag(project: str, stack: str) -> str:
    """The value that marks an object in Azure as a stack's; the tags of its Entra applications begin with it."""
    return f"{project}:{stack}"


def owner_mark(owner_id: str) -> str:
    """The tag of an Entra application with its stack's owner id: Graph's tags have no values."""
    return f"{OWNER}:{owner_id}"


# Replaces HyperShift's RBAC key in the name of the deployer's own role assignments.
DEPLOYER_COMPONENT: Final = "deployer"


def role_assignment_name(infra_id: str, component: str, scope: str) -> str:
    """HyperShift's name of a role assignment: UUIDv5 of `<infraID>-<component>-<scope>` (`cmd/util/azure.go:90-93`).

    The role is not part of it: an assignment with another role at the same place has the same name.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{infra_id}-{component}-{scope}"))


def dashed(hosted_cluster: str) -> str:
    """A hosted cluster's name as it stands in derived names, and its `infraID` unless another is set."""
    return hosted_cluster.replace(".", "-")


def control_plane_namespace(hosted_cluster_namespace: str, hosted_cluster: str) -> str:
    """Namespace of a hosted control plane (`hypershift-operator/controllers/manifests/manifests.go:24-26`)."""
    return f"{hosted_cluster_namespace}-{dashed(hosted_cluster)}"


def credentials_secret_name(stem: str, hosted_cluster: str) -> str:
    """Key Vault secret of a credential, as the managed-azure scripts name it, with hyphens for dots."""
    return f"{stem}-{dashed(hosted_cluster)}-json"


def signing_key_secret_name(hosted_cluster: str) -> str:
    """Kubernetes Secret with the key that signs service-account tokens, beside its HostedCluster."""
    return f"{hosted_cluster}-sa-signing-key"


def signing_key_vault_secret(hosted_cluster: str, generation: int | None = None) -> str:
    """Key Vault secret of a signing key; with None, of the only key of an existing issuer."""
    stem = f"{dashed(hosted_cluster)}-sa-signing-key"
    return stem if generation is None else f"{stem}-{generation}"


def encryption_key_secret_name(hosted_cluster: str) -> str:
    """Kubernetes Secret with the key that encrypts etcd (openshift/hypershift cmd/cluster/core/create.go:1167)."""
    return f"{hosted_cluster}-etcd-encryption-key"


def encryption_key_vault_secret(hosted_cluster: str) -> str:
    """Key Vault secret of the key that encrypts etcd."""
    return encryption_key_secret_name(dashed(hosted_cluster))


def issuer_url(name: str, storage_suffix: str) -> str:
    """Address of an issuer in a storage account of that name (`contrib/managed-azure/vars.sh`, OIDC_ISSUER_URL)."""
    return f"https://{name}.blob.{storage_suffix}/{name}"


def cluster_side_name(hosted_cluster: str) -> str:
    """Name of the component with the objects in a control plane's namespace; their names begin with it."""
    return f"{hosted_cluster}-cluster-side"


def namespace_guard_name(hosted_cluster: str) -> str:
    """Name of the guard that the engine deletes before everything that a control plane needs."""
    return f"{hosted_cluster}-namespace-guard"


_INFRASTRUCTURE: Final = "-infrastructure"


def infrastructure_name(hosted_cluster: str) -> str:
    """Name of the component with a hosted cluster's infrastructure."""
    return f"{hosted_cluster}{_INFRASTRUCTURE}"


def cluster_of_infrastructure(component: str) -> str:
    """The hosted cluster whose infrastructure has a component of this name."""
    return component.removesuffix(_INFRASTRUCTURE)


def control_plane_identity_name(hosted_cluster: str, field: str) -> str:
    """Name of an identity's component in the stack."""
    return f"{hosted_cluster}-{kebab(field)}"


def federated_identity_name(hosted_cluster: str, kind: str, identity: str) -> str:
    """Name of the component in the stack with a managed identity of the cluster's service accounts."""
    return f"{hosted_cluster}-{kind}-{identity}"


def secret_reader_name(identity: str) -> str:
    """Name of the key-vault-user's role on the secret of an identity's component (`keyVaultUserScope: secrets`)."""
    return f"{identity}-reader"


def data_plane_identity_name(hosted_cluster: str, identity: str, infra_id: str) -> str:
    """Managed identity of a guest cluster's component (`cmd/infra/azure/identities.go`)."""
    return f"{hosted_cluster}-{identity}-{infra_id}"


def federated_credential_name(hosted_cluster: str, identity: str, suffix: str) -> str:
    """Name of the federated credential of one of its service accounts (`cmd/infra/azure/identities.go`).

    An identity with one service account has a credential without a suffix.
    """
    return "-".join(filter(None, (hosted_cluster, identity, "fed-id", suffix)))


def managed_identity_id(subscription: str, resource_group: str, name: str) -> str:
    """ARM id of a user-assigned managed identity."""
    return resource_id(subscription, resource_group, "Microsoft.ManagedIdentity/userAssignedIdentities", name)


def kebab(name: str) -> str:
    """`cloudProvider` -> `cloud-provider`."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda letter: f"-{letter[0]}", name).lower()


def subscription_id(subscription: str) -> str:
    """ARM id of a subscription."""
    return f"/subscriptions/{subscription}"


def resource_group_id(subscription: str, resource_group: str) -> str:
    """ARM id of a resource group."""
    return f"{subscription_id(subscription)}/resourceGroups/{resource_group}"


def resource_id(subscription: str, resource_group: str, resource_type: str, *names: str) -> str:
    """ARM id of a resource; a child type (`vaults/secrets`) takes one name per segment."""
    provider, *segments = resource_type.split("/")
    path = "/".join(f"{segment}/{name}" for segment, name in zip(segments, names, strict=True))
    return f"{resource_group_id(subscription, resource_group)}/providers/{provider}/{path}"


def node_resource_group(resource_group: str, cluster: str, location: str) -> str:
    """The resource group of an AKS cluster's nodes, as AKS itself names it: at most 80 characters."""
    return f"MC_{resource_group}_{cluster}_{location}"[:80].rstrip(".")


def cluster_id(subscription: str, resource_group: str, cluster: str) -> str:
    """ARM id of an AKS cluster."""
    return resource_id(subscription, resource_group, "Microsoft.ContainerService/managedClusters", cluster)


def dns_prefix(cluster: str) -> str:
    """DNS prefix of an AKS cluster: 1-54 letters, digits and hyphens, no hyphen at an end."""
    return cluster.replace("_", "-")[:54].rstrip("-")


def vault_id(subscription: str, resource_group: str, vault: str) -> str:
    """ARM id of a key vault."""
    return resource_id(subscription, resource_group, VAULT_TYPE, vault)


def storage_account_id(subscription: str, resource_group: str, account: str) -> str:
    """ARM id of a storage account."""
    return resource_id(subscription, resource_group, "Microsoft.Storage/storageAccounts", account)


def secret_id(vault_id: str, secret: str) -> str:
    """ARM id of a secret, also the scope of a role on that secret alone."""
    return f"{vault_id}/secrets/{secret}"


def role_definition_id(subscription: str, guid: str) -> str:
    """ARM id of a built-in role, in the form HyperShift writes it."""
    return f"{subscription_id(subscription)}/providers/Microsoft.Authorization/roleDefinitions/{guid}"


@dataclass(frozen=True)
class ArmId:
    """A parsed resource id: `type` is `Microsoft.Network/virtualNetworks/subnets`, `names` has a name per segment."""

    subscription: str
    resource_group: str
    type: str
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The resource's own name: the last segment."""
        return self.names[-1]


# Azure's naming rules (learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules).
RESOURCE_GROUP_PATTERN: Final = r"[a-zA-Z0-9_()\-.]{0,89}[a-zA-Z0-9_()\-]"
VAULT_NAME_PATTERN: Final = r"(?!.*--)[a-zA-Z][a-zA-Z0-9-]{1,22}[a-zA-Z0-9]"
# For all types of resources: names of action groups may have spaces. Dots alone would be a step of a path.
RESOURCE_NAME_PATTERN: Final = r"(?!\.+$)[\w.()-]+( [\w.()-]+)*"
VAULT_TYPE: Final = "Microsoft.KeyVault/vaults"
_ARM_ID: Final = re.compile(
    r"/subscriptions/([\w-]+)/resourceGroups/([^/]+)/providers/([\w.]+)((?:/\w+/[^/]+)+)", re.IGNORECASE | re.ASCII
)


def split_arm_id(text: str) -> ArmId:
    """Parse a resource id with any names; raises ValueError with the form of an id."""
    match = _ARM_ID.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a resource id: "
            "/subscriptions/<id>/resourceGroups/<name>/providers/<namespace>/<type>/<name>"
        )
    subscription, resource_group, namespace, rest = match.groups()
    segments = rest.strip("/").split("/")
    return ArmId(subscription, resource_group, "/".join([namespace, *segments[0::2]]), tuple(segments[1::2]))


def parse_arm_id(text: str) -> ArmId:
    """Parse a resource id; raises ValueError, also for names that Azure does not accept.

    Parts of an id become paths of requests, and a vault's name the host that gets a token.
    """
    arm_id = split_arm_id(text)
    for pattern, name in (
        (RESOURCE_GROUP_PATTERN, arm_id.resource_group),
        *((RESOURCE_NAME_PATTERN, name) for name in arm_id.names),
    ):
        if not re.fullmatch(pattern, name, re.ASCII):
            raise ValueError(f"{text!r} is not a resource id: {name!r} is not a valid name")
    return arm_id


def parse_vault_id(text: str) -> ArmId:
    """Parse the id of a key vault; raises ValueError, also for a name that no vault can have."""
    arm_id = parse_arm_id(text)
    if arm_id.type.lower() != VAULT_TYPE.lower() or not is_vault_name(arm_id.name):
        raise ValueError(f"{text!r} is not the id of a key vault: {vault_id('<id>', '<name>', '<3-24 characters>')}")
    return arm_id


def comparable(text: str) -> str:
    """A name or an id as Azure compares it: without case, and a vault by its name, which is its own in all of Azure."""
    _, is_vault, name = text.lower().rpartition(f"/providers/{VAULT_TYPE.lower()}/")
    return name if is_vault else text.lower()


def is_vault_name(name: str) -> bool:
    """Whether a key vault, or a managed HSM, can have this name: the first label of its host."""
    return re.fullmatch(VAULT_NAME_PATTERN, name) is not None


# The default ranges of `hypershift create infra azure` (cmd/infra/azure/create.go:22-26).
ADDRESS_PREFIX: Final = "10.0.0.0/16"
SUBNET_ADDRESS_PREFIX: Final = "10.0.0.0/24"


@dataclass(frozen=True)
class InfrastructureNames:
    """What HyperShift's CLI makes for a hosted cluster, by name and id. `cluster` is the HostedCluster's name.

    Sources, all in openshift/hypershift: cmd/infra/azure/resource_groups.go:65-68 (groups), networking.go:80 (security
    group), :147 (network), :136 (subnet), :185 (private zone), :228 (link), create.go:309-315 (load balancer, address).
    """

    subscription: str
    cluster: str
    infra_id: str

    @property
    def stem(self) -> str:
        """Name of the managed resource group, of the network, and of the private zone's link to it."""
        return f"{self.cluster}-{self.infra_id}"

    @property
    def managed_group(self) -> str:
        """Resource group of the cluster's own resources, private zone, load balancer and public address."""
        return self.stem

    @property
    def network_group(self) -> str:
        return f"{self.cluster}-vnet-{self.infra_id}"

    @property
    def security_group_group(self) -> str:
        return f"{self.cluster}-nsg-{self.infra_id}"

    @property
    def groups(self) -> tuple[str, str, str]:
        return self.managed_group, self.network_group, self.security_group_group

    @property
    def security_group(self) -> str:
        return f"{self.stem}-nsg"

    @property
    def egress(self) -> str:
        """Name of the load balancer, of each of its parts, and of its public address.

        The nodes join its backend pool of that name
        (hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:450-452).
        """
        return self.infra_id

    @property
    def network_id(self) -> str:
        return resource_id(self.subscription, self.network_group, "Microsoft.Network/virtualNetworks", self.stem)

    @property
    def subnet(self) -> str:
        return "default"

    @property
    def subnet_id(self) -> str:
        return f"{self.network_id}/subnets/{self.subnet}"

    @property
    def security_group_id(self) -> str:
        kind = "Microsoft.Network/networkSecurityGroups"
        return resource_id(self.subscription, self.security_group_group, kind, self.security_group)

    @property
    def egress_id(self) -> str:
        """ARM id of the load balancer."""
        return resource_id(self.subscription, self.managed_group, "Microsoft.Network/loadBalancers", self.egress)

    @property
    def address_id(self) -> str:
        """ARM id of the load balancer's public address."""
        return resource_id(self.subscription, self.managed_group, "Microsoft.Network/publicIPAddresses", self.egress)

    def private_zone(self, base_domain: str) -> str:
        """Name of the private DNS zone: the cluster's own domain."""
        return f"{self.cluster}.{base_domain}"

    def private_zone_id(self, base_domain: str) -> str:
        kind = "Microsoft.Network/privateDnsZones"
        return resource_id(self.subscription, self.managed_group, kind, self.private_zone(base_domain))
