"""The outputs of a stack: what it exports, what other stacks take from it, and what the `idstack` command reads.

`Leaf` is the type of a value that Azure assigns, such as a client id. In a finished stack it is `str`
(`StackOutputs[str]`). In the program it may be an output of a resource, which is not known yet. Nothing in the outputs
is secret.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

Leaf = TypeVar("Leaf")


class ControlPlaneIdentityOutput(TypedDict, Generic[Leaf]):
    """One control-plane identity. Dates are RFC 3339 in UTC.

    Dates and thumbprint are None if another tool stored the credential in the vault: ARM does not show its value.
    """

    clientID: Leaf
    credentialsSecretName: str
    objectEncoding: str
    secretProviderClass: str
    notAfter: Leaf | None
    renewAfter: Leaf | None
    thumbprint: Leaf | None  # SHA-1, upper-case hexadecimal


class CredentialAddress(TypedDict):
    """Where one credential in use is found (`identity/settings/credential_loss.py`).

    `secret` is an ARM id; the guest cluster's identities have none. `principal` is the ARM id of a managed identity, or
    the credential source if the stack makes the identity itself.
    """

    secret: NotRequired[str]
    principal: str


class KmsKeySpec(TypedDict):
    """`spec.secretEncryption.kms.azure.activeKey`: one version of the key that encrypts etcd."""

    keyVaultName: str
    keyName: str
    keyVersion: str


class ManagedIdentitySpec(TypedDict, Generic[Leaf]):
    """`ManagedIdentity` in `api/hypershift/v1beta1/azure.go`."""

    clientID: Leaf
    credentialsSecretName: str
    objectEncoding: str


class KmsAzureSpec(TypedDict, Generic[Leaf]):
    """`spec.secretEncryption.kms.azure`."""

    activeKey: KmsKeySpec
    kms: ManagedIdentitySpec[Leaf]


class KmsSpec(TypedDict, Generic[Leaf]):
    """`spec.secretEncryption.kms`."""

    provider: Literal["Azure"]
    azure: KmsAzureSpec[Leaf]


class SecretEncryptionSpec(TypedDict, Generic[Leaf]):
    """`spec.secretEncryption`."""

    type: Literal["kms"]
    kms: KmsSpec[Leaf]


class ManagedIdentitiesSpec(TypedDict, Generic[Leaf]):
    """`spec.platform.azure.azureAuthenticationConfig.managedIdentities`."""

    # `managedIdentitiesKeyVault`, and a ManagedIdentitySpec by field for each identity that is switched on.
    controlPlane: dict[str, Any]
    # Client ids by field.
    dataPlane: dict[str, Leaf]


class AuthenticationConfigSpec(TypedDict, Generic[Leaf]):
    """`spec.platform.azure.azureAuthenticationConfig`."""

    azureAuthenticationConfigType: Literal["ManagedIdentities"]
    managedIdentities: ManagedIdentitiesSpec[Leaf]


class AzurePlatformSpec(TypedDict, Generic[Leaf]):
    """`spec.platform.azure`; `vnetID`, `subnetID` and `securityGroupID` are ARM ids."""

    cloud: str
    location: str
    resourceGroup: str
    subscriptionID: str
    tenantID: str
    vnetID: str
    subnetID: str
    securityGroupID: str
    azureAuthenticationConfig: AuthenticationConfigSpec[Leaf]


class PlatformSpec(TypedDict, Generic[Leaf]):
    """`spec.platform`."""

    type: Literal["Azure"]
    azure: AzurePlatformSpec[Leaf]


class HostedClusterSpec(TypedDict, Generic[Leaf]):
    """The identity part of a HostedCluster's `spec` (`api/hypershift/v1beta1/hostedcluster_types.go`)."""

    infraID: str
    issuerURL: str
    platform: PlatformSpec[Leaf]
    secretEncryption: SecretEncryptionSpec[Leaf]


class HostedClusterOutput(TypedDict, Generic[Leaf]):
    """One hosted cluster; identities are by the field of their row in the catalogue."""

    namespace: str  # of the HostedCluster
    controlPlane: dict[str, ControlPlaneIdentityOutput[Leaf]]
    dataPlane: dict[str, Leaf]  # client ids
    hostedClusterSpec: HostedClusterSpec[Leaf]
    credentialsInUse: dict[str, CredentialAddress]


class StackOutputs(TypedDict, Generic[Leaf], total=False):
    """Everything that a stack exports. A stack has no outputs before its first `up`, and all after a complete one.

    Only a stack with a management cluster has `managementClusterId`. Only a stack that creates its key-vault-user has
    `keyVaultUserAttachCommand`: the shell command that gives the identity to the nodes.
    """

    keyVaultId: str  # ARM id
    keyVaultName: str
    keyVaultUri: Leaf
    keyVaultUserClientId: Leaf
    tenantId: str
    clusterSide: Literal["stack", "hypershift"]
    hostedClusters: dict[str, HostedClusterOutput[Leaf]]  # by name
    managementClusterId: str  # ARM id
    keyVaultUserAttachCommand: Leaf
