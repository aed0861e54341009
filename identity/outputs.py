"""The outputs of a stack: what it exports, what other stacks take from it, and what the `idstack` command reads.

`Leaf` is the type of a value that Azure assigns, such as a client id. In a finished stack it is `str`
(`StackOutputs[str]`). In the program it may be an output of a resource, which is not known yet. Nothing in the outputs
is secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

from identity.naming import control_plane_namespace

Leaf = TypeVar("Leaf")
# Who makes the objects of a control plane: this program, or HyperShift's operators.
ClusterSide = Literal["stack", "hypershift"]


class ControlPlaneIdentityOutput(TypedDict, Generic[Leaf]):
    """One control-plane identity. Dates are RFC 3339 in UTC.

    Dates and thumbprint are None if another tool stored the credential in the vault: ARM does not show its value. Only
    a certificate that the stack issued has a generation.
    """

    clientID: Leaf
    credentialsSecretName: str
    objectEncoding: str
    secretProviderClass: str
    notAfter: Leaf | None
    renewAfter: Leaf | None
    thumbprint: Leaf | None  # SHA-1, upper-case hexadecimal
    generation: NotRequired[Leaf | None]  # slot and number (`a2`); the engine leaves None out of the outputs


class CredentialAddress(TypedDict):
    """Where one credential in use is found (`identity/settings/rules/credential_loss.py`).

    `secret` is an ARM id; the guest cluster's identities have none. `principal` is the ARM id of a managed identity, or
    the credential source if the stack makes the identity itself; of an issuer that the stack makes, its storage
    account. `location` is the region of what the stack makes, in which Azure moves nothing.
    """

    secret: NotRequired[str]
    principal: str
    location: NotRequired[str]


class KmsKeySpec(TypedDict):
    """`spec.secretEncryption.kms.azure.activeKey`: one version of the key that encrypts etcd."""

    keyVaultName: str
    keyName: str
    keyVersion: str


class EncryptionKeys(TypedDict):
    """The keys in whose vaults, or managed HSMs, the identity of the KMS plugin has its role."""

    activeKey: KmsKeySpec
    backupKey: NotRequired[KmsKeySpec]


class ManagedIdentityOutput(TypedDict, Generic[Leaf]):
    """A managed identity that is optional, or that a control plane signs in as; `resourceID` is an ARM id."""

    clientID: Leaf
    resourceID: str


class HostedClusterOutput(TypedDict, Generic[Leaf]):
    """One hosted cluster; identities are by the field of their row in the catalogue.

    A cluster without KMS has no `encryptionKeys`.
    """

    namespace: str  # of the HostedCluster
    controlPlane: dict[str, ControlPlaneIdentityOutput[Leaf]]  # none in a cluster with workload identities
    dataPlane: dict[str, Leaf]  # client ids of the managed identities of its service accounts
    managedIdentities: NotRequired[dict[str, ManagedIdentityOutput[Leaf]]]  # optional ones, and workload identities
    # The identity part of its `spec` (`components/hypershift/hosted_cluster_object.py`).
    hostedClusterSpec: dict[str, Any]
    # The rest of the HostedCluster as the stack writes it: `metadata` and `spec`.
    hostedClusterBase: dict[str, Any]
    externalDnsDomain: NotRequired[str]
    externalDnsZone: NotRequired[str]  # the name of `externalDnsZoneID`
    dnsZoneResourceGroup: NotRequired[str]
    credentialsInUse: dict[str, CredentialAddress]
    encryptionKeys: NotRequired[EncryptionKeys]
    encryptionKeySecret: NotRequired[str]  # with the key of etcd, if the stack makes it


class StackOutputs(TypedDict, Generic[Leaf], total=False):
    """Everything that a stack exports. A stack has no outputs before its first `up`, and all after a complete one.

    Only a stack that keeps something in a vault has `keyVaultId`, `keyVaultName` and `keyVaultUri`, and only one with
    credentials in it `keyVaultUserClientId`. Only a stack with a management cluster has `managementClusterId`. Only a
    stack that creates its key-vault-user has `keyVaultUserAttachCommand`: the shell command that gives the identity to
    the nodes. `commit` is that of the last run that was no mere renewal (`identity/checkout.py`); it is missing if the
    project was not in a git repository. Only a stack that creates its key-vault-user has `keyVaultUserInUse`. Only a
    stack with `keyVaultUserScope: secrets` has `keyVaultUserObjectId`: a tool that writes secrets into its vault gives
    the key-vault-user its role on each. The tags of all that could be mistaken for another stack's have the `ownerId`
    (`identity/credentials/secret_tags.py`).
    """

    keyVaultId: str  # ARM id
    keyVaultName: str
    keyVaultUri: Leaf
    keyVaultUserClientId: Leaf
    keyVaultUserObjectId: Leaf
    keyVaultUserInUse: CredentialAddress
    tenantId: str
    clusterSide: ClusterSide
    tagNames: list[str]  # the configured ones
    hostedClusters: dict[str, HostedClusterOutput[Leaf]]  # by name
    managementClusterId: str  # ARM id
    keyVaultUserAttachCommand: Leaf
    commit: str
    ownerId: Leaf


def is_managed_cluster(cluster: HostedClusterOutput[Any]) -> bool:
    """Whether it signs in with certificates in a vault, under a HyperShift that runs as a managed service."""
    return "managedIdentities" in cluster["hostedClusterSpec"]["platform"]["azure"]["azureAuthenticationConfig"]


def delivered_generations(outputs: StackOutputs[Any], cluster: str) -> dict[str, str]:
    """The generations (`a2`) of the certificates that a stack left in the vault, by the identity's field."""
    rows = _cluster(outputs, cluster).get("controlPlane", {})
    return {field: generation for field, row in rows.items() if (generation := row.get("generation"))}


def cluster_side(outputs: StackOutputs[Any], cluster: HostedClusterOutput[Any]) -> ClusterSide:
    """Who makes the objects of this control plane; of one without certificates it is always HyperShift."""
    return outputs.get("clusterSide", "stack") if cluster["controlPlane"] else "hypershift"


def owned_namespaces(outputs: StackOutputs[Any]) -> dict[str, str]:
    """The control planes' namespaces that the stack made, by hosted cluster."""
    return {
        name: control_plane_namespace(cluster["namespace"], name)
        for name, cluster in (outputs.get("hostedClusters") or {}).items()
        if cluster_side(outputs, cluster) == "stack"
    }


def encryption_keys(outputs: StackOutputs[Any], cluster: str) -> EncryptionKeys | None:
    """The keys that encrypted a hosted cluster's etcd in the last complete run; None if there were none."""
    return _cluster(outputs, cluster).get("encryptionKeys")


def encryption_key_secret(outputs: StackOutputs[Any], cluster: str) -> str | None:
    """The Secret with the key that encrypted etcd in the last complete run, if the stack made it."""
    return _cluster(outputs, cluster).get("encryptionKeySecret")


def _cluster(outputs: StackOutputs[Any], name: str) -> Mapping[str, Any]:
    return (outputs.get("hostedClusters") or {}).get(name) or {}
