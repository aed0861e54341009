"""The type tokens of the program's resources and the versions of ARM's API.

A token is `<package>:<module>:<type>`. azure-native and azuread have theirs in their SDKs, which are slow to import. A
version is the one that azure-native 3 uses for the same type, so that the commands read what the stack has written.
"""

from __future__ import annotations

from typing import Final

STACK: Final = "pulumi:pulumi:Stack"
"""The root resource, whose outputs are the stack's."""
PROVIDER: Final = "pulumi:providers:"
"""Prefix of a provider's type; the package follows."""

APPLICATION: Final = "azuread:index/application:Application"
REGISTERED_CERTIFICATE: Final = "azuread:index/applicationCertificate:ApplicationCertificate"
SERVICE_PRINCIPAL: Final = "azuread:index/servicePrincipal:ServicePrincipal"

FEDERATED_CREDENTIAL: Final = "azure-native:managedidentity:FederatedIdentityCredential"
LOAD_BALANCER: Final = "azure-native:network:LoadBalancer"
MANAGED_CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
MANAGED_IDENTITY: Final = "azure-native:managedidentity:UserAssignedIdentity"
NETWORK: Final = "azure-native:network:VirtualNetwork"
NETWORK_LINK: Final = "azure-native:privatedns:VirtualNetworkLink"
PRIVATE_ZONE: Final = "azure-native:privatedns:PrivateZone"
PUBLIC_ADDRESS: Final = "azure-native:network:PublicIPAddress"
RESOURCE_GROUP: Final = "azure-native:resources:ResourceGroup"
ROLE_ASSIGNMENT: Final = "azure-native:authorization:RoleAssignment"
SECURITY_GROUP: Final = "azure-native:network:NetworkSecurityGroup"
STORAGE_ACCOUNT: Final = "azure-native:storage:StorageAccount"
STORAGE_CONTAINER: Final = "azure-native:storage:BlobContainer"
SUBNET: Final = "azure-native:network:Subnet"
VAULT: Final = "azure-native:keyvault:Vault"

OWN: Final = "idstack:index:"
"""Prefix of the types of the project's own plugin."""
CERTIFICATE: Final = f"{OWN}Certificate"
CLUSTER_GATE: Final = f"{OWN}ClusterGate"
CREDENTIAL_SECRET: Final = f"{OWN}CredentialSecret"
ENCRYPTION_KEY: Final = f"{OWN}EncryptionKey"
ENCRYPTION_KEY_SECRET: Final = f"{OWN}EncryptionKeySecret"
HSM_ROLE_ASSIGNMENT: Final = f"{OWN}HsmRoleAssignment"
ISSUER_DOCUMENTS: Final = f"{OWN}IssuerDocuments"
NAMESPACE_GUARD: Final = f"{OWN}NamespaceGuard"
RENEWAL_SCHEDULE: Final = f"{OWN}RenewalSchedule"
SIGN_IN_GATE: Final = f"{OWN}SignInGate"
SIGNING_KEY: Final = f"{OWN}SigningKey"
SIGNING_KEY_SECRET: Final = f"{OWN}SigningKeySecret"
STACK_OWNER: Final = f"{OWN}StackOwner"
VAULT_SECRETS: Final = frozenset({CREDENTIAL_SECRET, SIGNING_KEY, ENCRYPTION_KEY})
"""The types that are a secret in a vault."""
PREFETCH_SECRETS: Final = f"{OWN}prefetchSecrets"
"""A function of the plugin, like the next two."""
FIND_OBSTACLES: Final = f"{OWN}findObstacles"
REQUIRE_REGISTRABLE: Final = f"{OWN}requireRegistrable"

DEPLOYMENT: Final = "kubernetes:apps/v1:Deployment"
HOSTED_CLUSTER_OBJECT: Final = "kubernetes:hypershift.openshift.io/v1beta1:HostedCluster"
NAMESPACE: Final = "kubernetes:core/v1:Namespace"
SECRET_PROVIDER_CLASS: Final = "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass"

CONTROL_PLANE_IDENTITY: Final = "idstack:azure:ControlPlaneIdentity"
"""A component of the program, like the next ones."""
CLUSTER_SIDE: Final = "idstack:kubernetes:ClusterSide"
DATA_PLANE_IDENTITY: Final = "idstack:azure:DataPlaneIdentity"
HOSTED_CLUSTER: Final = "idstack:hypershift:HostedCluster"
INFRASTRUCTURE: Final = "idstack:azure:Infrastructure"
KEY_VAULT_USER: Final = "idstack:azure:KeyVaultUser"
MANAGEMENT_CLUSTER: Final = "idstack:azure:ManagementCluster"
OIDC_ISSUER: Final = "idstack:azure:OidcIssuer"
OPTIONAL_IDENTITY: Final = "idstack:azure:OptionalIdentity"

AUTHORIZATION_API: Final = "2022-04-01"
CONTAINER_SERVICE_API: Final = "2025-09-01"
KEY_VAULT_API: Final = "2024-11-01"
MANAGED_IDENTITY_API: Final = "2023-01-31"
NETWORK_API: Final = "2024-05-01"
PRIVATE_DNS_API: Final = "2024-06-01"
RESOURCES_API: Final = "2024-03-01"
RESOURCES_LIST_API: Final = "2021-04-01"
STORAGE_API: Final = "2024-01-01"
SUBSCRIPTIONS_API: Final = "2022-12-01"
