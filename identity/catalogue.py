"""The one table of the identities of a managed Azure HostedCluster.

Everything that differs between identities is a column here; no other file spells an identity's name. Sources are paths
inside openshift/hypershift at 3ee9615 unless a repository is named; `V2/` stands for
`control-plane-operator/controllers/hostedcontrolplane/v2/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """Where a role is assigned: a resource group of the hosted cluster, or the vault of its encryption key."""

    MANAGED = "managed resource group"
    NSG = "network security group's resource group"
    VNET = "virtual network's resource group"
    DNS = "DNS zone's resource group"
    KMS_VAULT = "encryption key's vault"


@dataclass(frozen=True)
class Role:
    """A built-in role: Azure's display name and its GUID, the same in every cloud."""

    name: str
    guid: str


@dataclass(frozen=True)
class RoleGrant:
    """A role at one or more scopes."""

    role: Role
    scopes: tuple[Scope, ...]


class CloudConfigKind(StrEnum):
    """Who reads a cloud configuration document, and so its keys (components/kubernetes/cloud_config.py)."""

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
    env: str | None = None  # variable that names the document, when the consumer wants one

    @property
    def path(self) -> str:
        """Absolute path of the document in the pod."""
        return f"{self.directory}/{self.file}"


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One place where a pod mounts the identity's credential, and how its consumer finds the file.

    At most one of `credential_env` (a variable holding the file's path), `config` and `cluster_identity` (CAPZ reads an
    AzureClusterIdentity) is set; with none the path is built in the consumer's code.
    """

    deployment: str
    container: str
    volume: str
    path: str = "/mnt/certs"
    credential_env: str | None = None
    config: ConfigFile | None = None
    cluster_identity: bool = False


@dataclass(frozen=True, kw_only=True)
class ProofCall:
    """One request that the identity's own role grants: the proof that sign-in and role assignment work.

    `path` is a template over `subscription`, `managed` (resource group), `vnet_group`, `vnet`, `subnet`, `key` and
    `key_version`; with `vault` it is a path at the encryption key's vault instead of ARM.
    """

    path: str
    api_version: str
    action: str
    method: str = "GET"
    body: Mapping[str, str] | None = None
    vault: bool = False


@dataclass(frozen=True, kw_only=True)
class ControlPlaneIdentity:
    """One identity of the hosted control plane: a row of the table."""

    field: str  # its field in the HostedCluster API
    description: str
    hosted_cluster_path: tuple[str, ...]  # from `spec` to the ManagedIdentity object
    component: str  # HyperShift's RBAC key, part of the names of its role assignments
    secret_provider_class: str
    secret_stem: str  # first part of the Key Vault secret's name and of the application's
    hypershift: RoleGrant  # roles HyperShift's own CLI assigns
    builtin: RoleGrant  # production built-ins, narrower where they exist
    mounts: tuple[Mount, ...]
    proof: ProofCall
    optional: bool = False  # may be switched off: the API requires all others

    def grant(self, roles: str) -> RoleGrant:
        """The grant under the setting `roles`: `hypershift` or `builtin`."""
        return {"hypershift": self.hypershift, "builtin": self.builtin}[roles]

    def probe_name(self, mount: Mount) -> str:
        """Name of the credential probe's Deployment for one of the mounts: numbered from the second on."""
        number = self.mounts.index(mount) + 1
        stem = f"probe-{self.secret_provider_class.removeprefix(SECRET_PROVIDER_CLASS_PREFIX)}"
        return stem if number == 1 else f"{stem}-{number}"


@dataclass(frozen=True)
class FederatedSubject:
    """A service account of the guest cluster that may use a data-plane identity."""

    suffix: str  # last part of the federated credential's name
    subject: str


@dataclass(frozen=True, kw_only=True)
class DataPlaneIdentity:
    """A managed identity used inside the guest cluster through federated credentials."""

    field: str  # its field under `dataPlane` in the HostedCluster API
    name: str  # part of the identity's name, `<cluster>-<name>-<infraID>`
    description: str
    component: str
    grant: RoleGrant
    subjects: tuple[FederatedSubject, ...]


SECRET_PROVIDER_CLASS_PREFIX: Final = "managed-azure-"
# Audience of every federated credential (`cmd/infra/azure/identities.go:180-240`).
FEDERATED_AUDIENCE: Final = "openshift"

# support/config/constants.go:114-123; display names as Azure lists them.
CLOUD_CONTROLLER_MANAGER_ROLE: Final = Role(
    "Azure Red Hat OpenShift Cloud Controller Manager", "a1f96423-95ce-4224-ab27-4e3dc72facd4"
)
INGRESS_ROLE: Final = Role("Azure Red Hat OpenShift Cluster Ingress Operator", "0336e1d3-7a87-462b-b6db-342b63f7802c")
FILE_ROLE: Final = Role("Azure Red Hat OpenShift File Storage Operator", "0d7aedc0-15fd-4a67-a412-efad370c947e")
DISK_ROLE: Final = Role("Azure Red Hat OpenShift Disk Storage Operator", "5b7237c5-45e1-49d6-bc18-a1f62f400748")
NETWORK_ROLE: Final = Role("Azure Red Hat OpenShift Network Operator", "be7a6435-15ae-4171-8f30-4a343eff9e8f")
IMAGE_REGISTRY_ROLE: Final = Role(
    "Azure Red Hat OpenShift Image Registry Operator", "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5"
)
CONTRIBUTOR_ROLE: Final = Role("Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c")
# Azure/ARO-HCP internal/azure/cluster_scoped_identities_config.go:463-740
CONTROL_PLANE_OPERATOR_ROLE: Final = Role(
    "Azure Red Hat OpenShift Hosted Control Planes Control Plane Operator", "fc0c873f-45e9-4d0d-a7d1-585aab30c6ed"
)
CLUSTER_API_PROVIDER_ROLE: Final = Role(
    "Azure Red Hat OpenShift Hosted Control Planes Cluster API Provider", "88366f10-ed47-4cc0-9fab-c8a06148393e"
)
KEY_VAULT_CRYPTO_USER_ROLE: Final = Role("Key Vault Crypto User", "12338af0-0e69-4776-bea7-57ae8d297424")
KEY_VAULT_SECRETS_USER_ROLE: Final = Role("Key Vault Secrets User", "4633458b-17de-408a-b874-0445c86b69e6")

_MANAGED_PATH = "/subscriptions/{subscription}/resourceGroups/{managed}"
_VNET_PATH = (
    "/subscriptions/{subscription}/resourceGroups/{vnet_group}/providers/Microsoft.Network/virtualNetworks/{vnet}"
)
_CONTROL_PLANE = ("platform", "azure", "azureAuthenticationConfig", "managedIdentities", "controlPlane")
# Read by the ingress and the image-registry operator (support/config/constants.go:89-112).
_CREDENTIALS_FILE_ENV = "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH"


def _csi_driver_config(secret: str) -> ConfigFile:
    # openshift/csi-operator assets/overlays/azure-{disk,file}/generated/hypershift/controller.yaml
    return ConfigFile(
        kind=CloudConfigKind.CSI_DRIVER,
        secret=secret,
        volume="cloud-config",
        directory="/etc/kubernetes",
        file="cloud.conf",
        env="AZURE_CREDENTIAL_FILE",
    )


CONTROL_PLANE: Final = (
    ControlPlaneIdentity(
        field="cloudProvider",
        description="cloud controller manager",
        hosted_cluster_path=(*_CONTROL_PLANE, "cloudProvider"),
        component="cloud-provider",
        secret_provider_class="managed-azure-cloud-provider",
        secret_stem="cloud-provider",
        hypershift=RoleGrant(CLOUD_CONTROLLER_MANAGER_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        builtin=RoleGrant(CLOUD_CONTROLLER_MANAGER_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        # V2/cloud_controller_manager/azure/deployment.go:28-38
        mounts=(
            Mount(
                deployment="azure-cloud-controller-manager",
                container="cloud-controller-manager",
                volume="cloud-provider-cert",
                config=ConfigFile(
                    kind=CloudConfigKind.CLOUD_CONTROLLER_MANAGER,
                    secret="azure-cloud-config",
                    volume="cloud-config",
                    directory="/etc/cloud",
                    file="cloud.conf",
                ),
            ),
        ),
        proof=ProofCall(
            path=f"{_MANAGED_PATH}/providers/Microsoft.Network/loadBalancers",
            api_version="2025-05-01",
            action="Microsoft.Network/loadBalancers/read",
        ),
    ),
    ControlPlaneIdentity(
        field="nodePoolManagement",
        description="Cluster API provider (CAPZ)",
        hosted_cluster_path=(*_CONTROL_PLANE, "nodePoolManagement"),
        component="capz",
        secret_provider_class="managed-azure-nodepool-management",
        secret_stem="nodepool-mgmt",
        hypershift=RoleGrant(CONTRIBUTOR_ROLE, (Scope.MANAGED, Scope.VNET)),
        builtin=RoleGrant(CLUSTER_API_PROVIDER_ROLE, (Scope.MANAGED, Scope.VNET)),
        # hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:179-214
        mounts=(
            Mount(
                deployment="capi-provider",
                container="manager",
                volume="nodepool-management-cert",
                cluster_identity=True,
            ),
        ),
        proof=ProofCall(
            path=f"{_MANAGED_PATH}/providers/Microsoft.Compute/virtualMachines",
            api_version="2024-03-01",
            action="Microsoft.Compute/virtualMachines/read",
        ),
    ),
    ControlPlaneIdentity(
        field="controlPlaneOperator",
        description="control-plane operator",
        hosted_cluster_path=(*_CONTROL_PLANE, "controlPlaneOperator"),
        component="cpo",
        secret_provider_class="managed-azure-cpo",
        secret_stem="cpo",
        hypershift=RoleGrant(CONTRIBUTOR_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        builtin=RoleGrant(CONTROL_PLANE_OPERATOR_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        # V2/controlplaneoperator/deployment.go:239-246
        mounts=(Mount(deployment="control-plane-operator", container="control-plane-operator", volume="cpo-cert"),),
        proof=ProofCall(
            path="/subscriptions/{subscription}/resourcegroups/{managed}",
            api_version="2021-04-01",
            action="Microsoft.Resources/subscriptions/resourceGroups/read",
        ),
    ),
    ControlPlaneIdentity(
        field="imageRegistry",
        description="image-registry operator",
        hosted_cluster_path=(*_CONTROL_PLANE, "imageRegistry"),
        component="ciro",
        secret_provider_class="managed-azure-image-registry",
        secret_stem="ciro",
        hypershift=RoleGrant(IMAGE_REGISTRY_ROLE, (Scope.MANAGED,)),
        builtin=RoleGrant(IMAGE_REGISTRY_ROLE, (Scope.MANAGED,)),
        # V2/registryoperator/deployment.go:31-41
        mounts=(
            Mount(
                deployment="cluster-image-registry-operator",
                container="cluster-image-registry-operator",
                volume="image-registry-cert",
                credential_env=_CREDENTIALS_FILE_ENV,
            ),
        ),
        proof=ProofCall(
            path=f"{_MANAGED_PATH}/providers/Microsoft.Storage/storageAccounts",
            api_version="2023-05-01",
            action="Microsoft.Storage/storageAccounts/read",
        ),
        optional=True,
    ),
    ControlPlaneIdentity(
        field="ingress",
        description="ingress operator (DNS)",
        hosted_cluster_path=(*_CONTROL_PLANE, "ingress"),
        component="ingress",
        secret_provider_class="managed-azure-ingress",
        secret_stem="ingress",
        hypershift=RoleGrant(INGRESS_ROLE, (Scope.MANAGED, Scope.VNET, Scope.DNS)),
        builtin=RoleGrant(INGRESS_ROLE, (Scope.MANAGED, Scope.VNET, Scope.DNS)),
        # V2/ingressoperator/deployment.go:44-54
        mounts=(
            Mount(
                deployment="ingress-operator",
                container="ingress-operator",
                volume="ingress-cert",
                credential_env=_CREDENTIALS_FILE_ENV,
            ),
        ),
        # The only read that the role grants.
        proof=ProofCall(
            path=f"{_VNET_PATH}/subnets/{{subnet}}",
            api_version="2023-11-01",
            action="Microsoft.Network/virtualNetworks/subnets/read",
        ),
    ),
    ControlPlaneIdentity(
        field="network",
        description="cloud network config controller",
        hosted_cluster_path=(*_CONTROL_PLANE, "network"),
        component="cncc",
        secret_provider_class="managed-azure-network",
        secret_stem="cncc",
        hypershift=RoleGrant(NETWORK_ROLE, (Scope.MANAGED, Scope.VNET)),
        builtin=RoleGrant(NETWORK_ROLE, (Scope.MANAGED, Scope.VNET)),
        # openshift/cluster-network-operator bindata/cloud-network-config-controller/managed/controller.yaml
        mounts=(
            Mount(
                deployment="cloud-network-config-controller",
                container="controller",
                volume="cncc-cert",
                path="/var/run/secrets/azure",
                credential_env="ARO_HCP_CLIENT_CREDENTIALS_PATH",
            ),
        ),
        proof=ProofCall(path=_VNET_PATH, api_version="2024-05-01", action="Microsoft.Network/virtualNetworks/read"),
    ),
    ControlPlaneIdentity(
        field="disk",
        description="Azure Disk CSI controller",
        hosted_cluster_path=(*_CONTROL_PLANE, "disk"),
        component="azure-disk",
        secret_provider_class="managed-azure-disk-csi",
        secret_stem="azure-disk",
        hypershift=RoleGrant(DISK_ROLE, (Scope.MANAGED,)),
        builtin=RoleGrant(DISK_ROLE, (Scope.MANAGED,)),
        # openshift/csi-operator pkg/driver/azure-disk/azure_disk.go:216-224,411-435
        mounts=(
            Mount(
                deployment="azure-disk-csi-driver-controller",
                container="csi-driver",
                volume="azure-disk",
                config=_csi_driver_config("azure-disk-csi-config"),
            ),
        ),
        proof=ProofCall(
            path=f"{_MANAGED_PATH}/providers/Microsoft.Compute/disks",
            api_version="2025-01-02",
            action="Microsoft.Compute/disks/read",
        ),
    ),
    ControlPlaneIdentity(
        field="file",
        description="Azure File CSI controller",
        hosted_cluster_path=(*_CONTROL_PLANE, "file"),
        component="azure-file",
        secret_provider_class="managed-azure-file-csi",
        secret_stem="azure-file",
        hypershift=RoleGrant(FILE_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        builtin=RoleGrant(FILE_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        # openshift/csi-operator pkg/driver/azure-file/azure_file.go:177-185,267-291
        mounts=(
            Mount(
                deployment="azure-file-csi-driver-controller",
                container="csi-driver",
                volume="azure-file",
                config=_csi_driver_config("azure-file-csi-config"),
            ),
        ),
        proof=ProofCall(
            path=f"{_MANAGED_PATH}/providers/Microsoft.Storage/storageAccounts",
            api_version="2025-01-01",
            action="Microsoft.Storage/storageAccounts/read",
        ),
    ),
    ControlPlaneIdentity(
        field="kms",
        description="etcd encryption (KMS plugin of kube-apiserver)",
        hosted_cluster_path=("secretEncryption", "kms", "azure", "kms"),
        # HyperShift assigns nothing to this identity and so has no RBAC key for it.
        component="kms",
        secret_provider_class="managed-azure-kms",
        secret_stem="kms",
        hypershift=RoleGrant(KEY_VAULT_CRYPTO_USER_ROLE, (Scope.KMS_VAULT,)),
        builtin=RoleGrant(KEY_VAULT_CRYPTO_USER_ROLE, (Scope.KMS_VAULT,)),
        mounts=(
            # V2/kas/kms/azure.go:187-204,236-263,343-353
            Mount(
                deployment="kube-apiserver",
                container="azure-kms-provider-active",
                volume="kms-cert",
                config=ConfigFile(
                    kind=CloudConfigKind.KMS_PLUGIN,
                    secret="azure-kms-config",
                    volume="azure-kms-credentials",
                    directory="/etc/kubernetes",
                    file="azure.json",
                ),
            ),
            # V2/controlplaneoperator/deployment.go:248-256: test-encrypts for the condition ValidAzureKMSConfig
            Mount(
                deployment="control-plane-operator",
                container="control-plane-operator",
                volume="kms-cert",
                path="/mnt/kms",
            ),
        ),
        proof=ProofCall(
            method="POST",
            path="/keys/{key}/{key_version}/encrypt",
            api_version="2025-07-01",
            action="Microsoft.KeyVault/vaults/keys/encrypt/action",
            body={"alg": "RSA-OAEP-256", "value": "dGV4dA"},
            vault=True,
        ),
    ),
)


def _csi_subjects(driver: str) -> tuple[FederatedSubject, ...]:
    account = f"system:serviceaccount:openshift-cluster-csi-drivers:{driver}"
    return (
        FederatedSubject("node", f"{account}-node-sa"),
        FederatedSubject("operator", f"{account}-operator"),
        FederatedSubject("controller", f"{account}-controller-sa"),
    )


# Subjects: `cmd/infra/azure/identities.go:180-240`, which holds every subject production uses as well.
DATA_PLANE: Final = (
    DataPlaneIdentity(
        field="imageRegistryMSIClientID",
        name="image-registry",
        description="image registry in the guest cluster",
        component="ciroWI",
        grant=RoleGrant(IMAGE_REGISTRY_ROLE, (Scope.MANAGED,)),
        subjects=(
            FederatedSubject("registry", "system:serviceaccount:openshift-image-registry:registry"),
            FederatedSubject(
                "operator", "system:serviceaccount:openshift-image-registry:cluster-image-registry-operator"
            ),
        ),
    ),
    DataPlaneIdentity(
        field="diskMSIClientID",
        name="disk",
        description="Azure Disk CSI driver in the guest cluster",
        component="azure-diskWI",
        grant=RoleGrant(DISK_ROLE, (Scope.MANAGED,)),
        subjects=_csi_subjects("azure-disk-csi-driver"),
    ),
    DataPlaneIdentity(
        field="fileMSIClientID",
        name="file",
        description="Azure File CSI driver in the guest cluster",
        component="azure-fileWI",
        grant=RoleGrant(FILE_ROLE, (Scope.MANAGED,)),
        subjects=_csi_subjects("azure-file-csi-driver"),
    ),
)
