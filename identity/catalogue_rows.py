"""The columns of the catalogue, each with its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import combinations, product
from typing import Final

from identity.roles import Role

SECRET_PROVIDER_CLASS_PREFIX: Final = "managed-azure-"
# Of the identities of both authentication modes (api/hypershift/v1beta1/azure.go:1006-1051).
AUTHENTICATION_PATH: Final = ("platform", "azure", "azureAuthenticationConfig")
WORKLOAD_IDENTITIES_PATH: Final = (*AUTHENTICATION_PATH, "workloadIdentities")


class Scope(StrEnum):
    """Where a role is assigned: a resource group of the hosted cluster, or resources of it or that it uses."""

    MANAGED = "managed resource group"
    NSG = "network security group's resource group"
    VNET = "virtual network's resource group"
    DNS = "DNS zone's resource group"
    NETWORK = "virtual network"
    SUBNET = "subnet"
    SECURITY_GROUP = "network security group"
    ROUTE_TABLE = "subnet's route table"
    NAT_GATEWAY = "subnet's NAT gateway"
    ZONES = "DNS zones"
    KMS_VAULT = "encryption keys' vaults"
    BACKUP_STORAGE = "storage account of backups"
    REGISTRY = "container registry"
    EXTERNAL_ZONE = "DNS zone of externalDnsDomain"
    EXTERNAL_ZONE_GROUP = "resource group of the DNS zone of externalDnsDomain"


@dataclass(frozen=True)
class RoleGrant:
    """A role at one or more scopes."""

    role: Role
    scopes: tuple[Scope, ...]


class CloudConfigKind(StrEnum):
    """The reader of a cloud configuration document, which decides its keys (components/kubernetes/cloud_config.py)."""

    CLOUD_CONTROLLER_MANAGER = "cloud-controller-manager"
    CSI_DRIVER = "csi-driver"
    KMS_PLUGIN = "kms-plugin"


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """A cloud configuration document that names the credential file to its consumer."""

    kind: CloudConfigKind
    secret: str  # Kubernetes Secret that holds the document under the key `cloud.conf`
    volume: str
    directory: str  # where the volume is mounted
    file: str  # the document's name inside it
    env: str | None = None  # variable that names the document, if the consumer reads one

    @property
    def path(self) -> str:
        """Absolute path of the document in the pod."""
        return f"{self.directory}/{self.file}"


@dataclass(frozen=True, kw_only=True)
class PlatformFiles:
    """What a consumer reads of the hosted cluster's platform besides its credential."""

    secret: str  # Kubernetes Secret with region, groups, subscription and tenant
    config_map: str  # empty on Azure


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One place where a pod mounts the identity's credential, and how its consumer knows the path.

    The file has the name of the secret, unless `file` is set. It is the same in all mounts of an identity. At most one
    of `credential_env` (a variable with the path), `config` and `cluster_identity` (CAPZ reads an AzureClusterIdentity)
    is set; without them the path is in the consumer's code.
    """

    deployment: str
    container: str
    volume: str
    path: str = "/mnt/certs"
    file: str | None = None
    credential_env: str | None = None
    config: ConfigFile | None = None
    cluster_identity: bool = False
    platform: PlatformFiles | None = None


@dataclass(frozen=True, kw_only=True)
class ProofTarget:
    """The resources that the proof calls of one hosted cluster request. The subscription is a UUID."""

    subscription: str
    managed: str  # the hosted cluster's resource group
    vnet_group: str
    vnet: str
    subnet: str
    # Of the key that encrypts etcd; empty without one.
    key_vault: str = ""
    key: str = ""
    key_version: str = ""
    backup_storage: str = ""  # ARM id of the storage account of backups; empty without one
    is_managed_hsm: bool = False


@dataclass(frozen=True, kw_only=True)
class ProofCall:
    """A request that the identity's role grants: it proves sign-in and role assignment.

    `path` is a template with the fields of `ProofTarget`, of ARM or, with `vault`, of the target's key vault.
    """

    path: str
    api_version: str
    action: str
    method: str = "GET"
    body: Mapping[str, str] | None = None
    vault: bool = False

    def path_of(self, target: ProofTarget) -> str:
        """The path for one hosted cluster; KeyError for a placeholder that `ProofTarget` does not have."""
        return self.path.format_map(asdict(target))


@dataclass(frozen=True, kw_only=True)
class GrantedIdentity:
    """An identity of every hosted cluster, with its role in each of the two sets."""

    field: str  # its field in the HostedCluster API
    description: str
    component: str  # HyperShift's RBAC key, part of the names of its role assignments
    hypershift: RoleGrant  # what HyperShift's own CLI assigns
    builtin: RoleGrant  # production's role, at the resources themselves

    def grant(self, roles: str) -> RoleGrant:
        """The grant under the setting `roles`: `hypershift` or `builtin`."""
        return {"hypershift": self.hypershift, "builtin": self.builtin}[roles]


@dataclass(frozen=True)
class FederatedSubject:
    """A service account that may use a managed identity."""

    suffix: str  # last part of the federated credential's name; empty if the identity has no other
    subject: str

    @property
    def word(self) -> str:
        """Its name among the identity's subjects, in resource names and in the configuration."""
        return self.suffix or "account"


@dataclass(frozen=True, kw_only=True)
class DataPlaneIdentity(GrantedIdentity):
    """A managed identity that service accounts of the hosted cluster use through federated credentials.

    `field` is the one under `dataPlane` in the HostedCluster API, or under `workloadIdentities`.
    """

    name: str  # part of the identity's name, `<cluster>-<name>-<infraID>`
    subjects: tuple[FederatedSubject, ...]
    stem: str | None = None  # part of its credentials' names; None: `name`
    kind: str = "data-plane"  # part of the names of its resources in the stack

    @property
    def credential_stem(self) -> str:
        """Part of the names of its federated credentials."""
        return self.stem or self.name


@dataclass(frozen=True)
class WorkloadColumns:
    """The identity as a workload identity: a pod exchanges a token of the hosted cluster at Entra ID.

    Control plane and guest cluster share one managed identity, with the roles of the row.
    """

    name: str  # part of the identity's name, `<cluster>-<name>-<infraID>`
    subjects: tuple[FederatedSubject, ...]
    stem: str | None = None  # part of its credentials' names; None: `name`
    path: tuple[str, ...] | None = None  # from `spec` to the object with the client id; None: with the others
    private: bool = False  # a public hosted cluster has none
    token: str = "/var/run/secrets/openshift/serviceaccount/token"  # path in the pod

    def probe_name(self, subject: FederatedSubject) -> str:
        """Name of the Deployment that proves the identity with a token of one of its service accounts."""
        return "-".join(filter(None, ("probe", self.name, subject.suffix)))


@dataclass(frozen=True, kw_only=True)
class ControlPlaneIdentity(GrantedIdentity):
    """One identity of the hosted control plane: a row of the table."""

    hosted_cluster_path: tuple[str, ...] | None  # from `spec` to the ManagedIdentity object; None if the API has none
    secret_provider_class: str
    secret_stem: str  # first part of the Key Vault secret's name and of the application's
    mounts: tuple[Mount, ...]
    proof: ProofCall
    # Its objects are the hypershift-operator's, not the control-plane operator's.
    of_hypershift_operator: bool = False
    optional: bool = False  # may be disabled: the API requires all others
    enabled_by_default: bool = True  # False: few clusters need it
    setting: str | None = None  # key of the hosted cluster without which it has no such identity
    capability: str | None = None  # of HyperShift: enabled unless `spec.capabilities.disabled` names it
    workload: WorkloadColumns | None = None  # None: no such identity with workload identities

    @property
    def workload_path(self) -> tuple[str, ...]:
        """From `spec` to the object with the workload identity's client id."""
        return (self.workload and self.workload.path) or (*WORKLOAD_IDENTITIES_PATH, self.field)

    @property
    def federated(self) -> DataPlaneIdentity | None:
        """The managed identity that replaces it in a cluster with workload identities."""
        if self.workload is None:
            return None
        return DataPlaneIdentity(
            field=self.field,
            description=self.description,
            component=self.component,
            hypershift=self.hypershift,
            builtin=self.builtin,
            name=self.workload.name,
            subjects=self.workload.subjects,
            stem=self.workload.stem,
            kind="workload",
        )

    def probe_name(self, mount: Mount) -> str:
        """Name of the credential probe's Deployment for one of the mounts, numbered from the second on."""
        number = self.mounts.index(mount) + 1
        stem = f"probe-{self.secret_provider_class.removeprefix(SECRET_PROVIDER_CLASS_PREFIX)}"
        return stem if number == 1 else f"{stem}-{number}"


@dataclass(frozen=True, kw_only=True)
class OptionalManagedIdentity:
    """A managed identity that few hosted clusters need, without a credential in the vault.

    `subjects` are service accounts of the management cluster. `attached_by`: the HostedCluster names the identity for
    its nodes (`spec.platform.azure.containerRegistry`), and the control-plane identity of this field attaches it.
    `used_once` is why one such identity serves all hosted clusters of a management cluster; None: each has its own.
    """

    field: str  # in `managedIdentities` of a hosted cluster
    name: str  # part of the identity's name, `<cluster>-<name>-<infraID>`
    description: str
    component: str  # part of the names of its role assignments
    grants: tuple[RoleGrant, ...]
    subjects: tuple[FederatedSubject, ...] = ()
    attached_by: str | None = None
    used_once: str | None = None


CONTROL_PLANE_PATH: Final = (*AUTHENTICATION_PATH, "managedIdentities", "controlPlane")
KMS_PATH: Final = ("secretEncryption", "kms", "azure")
VNET_PATH: Final = (
    "/subscriptions/{subscription}/resourceGroups/{vnet_group}/providers/Microsoft.Network/virtualNetworks/{vnet}"
)
# Read by the ingress and the image-registry operator (support/config/constants.go:89-112).
CREDENTIALS_FILE_ENV: Final = "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH"
# An update of a subnet needs `join/action` on every resource that the subnet refers to.
REFERRED_BY_SUBNET: Final = (Scope.SECURITY_GROUP, Scope.ROUTE_TABLE, Scope.NAT_GATEWAY)
REGISTRY_SUBJECTS: Final = (
    FederatedSubject("registry", "system:serviceaccount:openshift-image-registry:registry"),
    FederatedSubject("operator", "system:serviceaccount:openshift-image-registry:cluster-image-registry-operator"),
)


def only_subject(account: str, namespace: str = "kube-system") -> tuple[FederatedSubject, ...]:
    """The one subject of an identity."""
    return (FederatedSubject("", f"system:serviceaccount:{namespace}:{account}"),)


def csi_subjects(driver: str) -> tuple[FederatedSubject, ...]:
    """The subjects of a CSI driver: on the nodes, its operator's and its controller's."""
    account = f"system:serviceaccount:openshift-cluster-csi-drivers:{driver}"
    return (
        FederatedSubject("node", f"{account}-node-sa"),
        FederatedSubject("operator", f"{account}-operator"),
        FederatedSubject("controller", f"{account}-controller-sa"),
    )


def csi_driver_config(secret: str) -> ConfigFile:
    """openshift/csi-operator assets/overlays/azure-{disk,file}/generated/hypershift/controller.yaml."""
    return ConfigFile(
        kind=CloudConfigKind.CSI_DRIVER,
        secret=secret,
        volume="cloud-config",
        directory="/etc/kubernetes",
        file="cloud.conf",
        env="AZURE_CREDENTIAL_FILE",
    )


def managed_group_list(type: str, api_version: str) -> ProofCall:
    """List the resources of a type in the hosted cluster's managed resource group."""
    path = f"/subscriptions/{{subscription}}/resourceGroups/{{managed}}/providers/{type}"
    return ProofCall(path=path, api_version=api_version, action=f"{type}/read")


class MountCollisionError(ValueError):
    """Two identities need the same `place` in a container; `first` and `second` are their fields."""

    def __init__(self, first: str, second: str, place: str) -> None:
        super().__init__(f"{first} and {second} both need {place}")
        self.first, self.second, self.place = first, second, place


def side_by_side(rows: Sequence[ControlPlaneIdentity]) -> tuple[Mount, ...]:
    """One mount of each row, the first that fit together: a pod with another mount at /mnt/certs has KMS at /mnt/kms.

    Raises MountCollisionError if no choice of mounts fits.
    """
    for choice in product(*(row.mounts for row in rows)):
        if all(_shared(*pair) is None for pair in combinations(choice, 2)):
            return choice
    raise next(_collisions(rows))


def _collisions(rows: Sequence[ControlPlaneIdentity]) -> Iterator[MountCollisionError]:
    """The pairs that never fit; if every pair fits, those that do not with their first mounts."""
    pairs = list(combinations(rows, 2))
    never = [pair for pair in pairs if all(_shared(*choice) for choice in product(*(row.mounts for row in pair)))]
    for first, second in [*never, *pairs]:
        place = _shared(first.mounts[0], second.mounts[0])
        if place is not None:
            yield MountCollisionError(first.field, second.field, place)


def _shared(one: Mount, other: Mount) -> str | None:
    claims = _claims(other)
    return next((claim for claim in _claims(one) if claim in claims), None)


def _claims(mount: Mount) -> list[str]:
    """The places that the mount needs in a pod, in words; see components/kubernetes/wiring.py."""
    claims = [f"the path {mount.path}", f"a volume {mount.volume}"]
    if mount.credential_env is not None:
        claims.append(f"the variable {mount.credential_env}")
    if mount.config is not None:
        claims += [f"the path {mount.config.directory}", f"a volume {mount.config.volume}"]
        if mount.config.env is not None:
            claims.append(f"the variable {mount.config.env}")
    return claims
