"""Azure's built-in roles that the stack assigns or names: the only place of their GUIDs in the program.

`cloud/localcloud/azure/roles.yaml` has what each of them grants. Paths are inside openshift/hypershift at 3ee9615
unless a repository is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Role:
    """A built-in role: Azure's display name and its GUID, the same in every cloud."""

    name: str
    guid: str


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
# A managed HSM's own role, not Azure's (azure-docs `key-vault/managed-hsm/built-in-roles`): Managed HSM Crypto User, as
# in contrib/managed-azure/setup_etcd_managed_hsm.sh:100-104.
MANAGED_HSM_CRYPTO_USER: Final = "21dbd100-6940-42c2-9190-5d6cb909625b"
KEY_VAULT_CRYPTO_USER_ROLE: Final = Role("Key Vault Crypto User", "12338af0-0e69-4776-bea7-57ae8d297424")
KEY_VAULT_SECRETS_USER_ROLE: Final = Role("Key Vault Secrets User", "4633458b-17de-408a-b874-0445c86b69e6")
# learn.microsoft.com/azure/role-based-access-control/built-in-roles/storage
STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE: Final = Role(
    "Storage Blob Data Contributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
)
# learn.microsoft.com/azure/role-based-access-control/built-in-roles/{networking,identity}
DNS_ZONE_CONTRIBUTOR_ROLE: Final = Role("DNS Zone Contributor", "befefa01-2a29-4197-83a8-272ff33ce314")
MANAGED_IDENTITY_OPERATOR_ROLE: Final = Role("Managed Identity Operator", "f1a07417-d97a-45cb-824c-7a7467783830")
# learn.microsoft.com/azure/role-based-access-control/built-in-roles/containers
ACR_PULL_ROLE: Final = Role("AcrPull", "7f951dda-4ed3-4680-a7ca-43fe172d538d")
AKS_RBAC_ADMIN_ROLE: Final = Role("Azure Kubernetes Service RBAC Admin", "3498e952-d568-435e-9b2c-8d77e338d7f7")
AKS_RBAC_CLUSTER_ADMIN_ROLE: Final = Role(
    "Azure Kubernetes Service RBAC Cluster Admin", "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
)
# Who may assign roles: no identity of a hosted cluster (learn.microsoft.com/.../built-in-roles/privileged).
OWNER_ROLE: Final = Role("Owner", "8e3af657-a8ff-443c-a75c-2fe8c4bcb635")
USER_ACCESS_ADMINISTRATOR_ROLE: Final = Role("User Access Administrator", "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9")
# Of the deployer, the preview identity and renewals (`identity/azure/deployer_rights.py`).
# learn.microsoft.com/azure/role-based-access-control/built-in-roles/{general,privileged,security,containers,networking}
READER_ROLE: Final = Role("Reader", "acdd72a7-3385-48ef-bd42-f606fba81ae7")
RBAC_ADMINISTRATOR_ROLE: Final = Role("Role Based Access Control Administrator", "f58310d9-a9f6-439a-9e8d-f62e7b41a168")
KEY_VAULT_SECRETS_OFFICER_ROLE: Final = Role("Key Vault Secrets Officer", "b86a8fe4-44ce-4948-aee5-eccb2c155cd7")
AKS_CLUSTER_USER_ROLE: Final = Role(
    "Azure Kubernetes Service Cluster User Role", "4abbcc35-e782-43d8-92c5-2d3f1bd2253f"
)
NETWORK_CONTRIBUTOR_ROLE: Final = Role("Network Contributor", "4d97b98b-1d4f-4787-a291-c67834d212e7")
