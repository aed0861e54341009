"""Inputs and outputs of the resources and functions of the project's own plugin.

A component registers the inputs, the plugin checks them and creates the resource, and the commands read them in a
state. Every input is an output as well. `Text` is `str` in the plugin and in a state, an input or output of Pulumi in a
component; `JsonObject` is the same for objects. Dates are RFC 3339 in UTC, ids of Azure as ARM spells them, thumbprints
SHA-1 in upper-case hexadecimal. In previews the plugin has `plugin.UNKNOWN` for unknown values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, Literal, NotRequired, TypedDict, TypeVar

# The only secret input: marked as a secret in every input, output and state.
SECRET_INPUT: Final = "kubeconfig"
# The schema version of the resources in a state. 1: version 0.1.0. `CONTRIBUTING.md` says what belongs to the next one.
SCHEMA: Final = 1
SCHEMA_MARK: Final = {"schema": SCHEMA}
# Inputs that name what Azure compares without case.
AZURE_NAMES: Final = frozenset(
    ("tenantId", "vaultId", "secretName", "clientId", "objectId", "principalId", "clusterId", "hsm", "roleDefinition")
)
Text = TypeVar("Text")
JsonObject = TypeVar("JsonObject")


class UnknownSchemaError(Exception):
    """Properties in another schema than this version's, and how to fix it."""


def require_current_schema(properties: Mapping[str, Any]) -> None:
    """Raises UnknownSchemaError for properties that another version of the plugin wrote."""
    schema = properties.get("schema", "(none)")
    if schema != SCHEMA:
        raise UnknownSchemaError(
            f"the state has the schema {schema} of this plugin; this version reads {SCHEMA}: use the version "
            "that brought the stack up last, or a later one"
        )


@dataclass(frozen=True)
class AtLeast:
    """The least integer that the plugin accepts."""

    least: int


Natural = Annotated[int, AtLeast(0)]
Positive = Annotated[int, AtLeast(1)]


class VaultAddress(TypedDict):
    """Where a secret of a Key Vault is; `cloud` is a name of `identity/clouds.py`."""

    cloud: str
    tenantId: str
    vaultId: str
    secretName: str


class SecretTags(TypedDict, Generic[Text]):
    """The tags of a secret, and the stack's owner id among them; a run that only renews does not know it."""

    tags: Mapping[str, str]
    ownerId: NotRequired[Text | None]


class StackOwnerInputs(TypedDict):
    """Nothing."""


class StackOwnerOutputs(TypedDict, Generic[Text]):
    """`ownerId` is a UUID that is generated once and stays as long as the state."""

    ownerId: Text


class CertificateSlot(TypedDict):
    """One of the two certificates of an identity; `validDays` is the lifetime it was issued for.

    After a refresh `withdrawn` marks one with which nobody can sign in.
    """

    generation: int
    notBefore: str
    validDays: int
    withdrawn: NotRequired[bool]


class DeliveryRecord(TypedDict):
    """The last delivery on record (`name` is `a1`); without `at`, no certificate in the vault can sign in."""

    name: str
    at: NotRequired[str]


class ScheduledDocument(VaultAddress, Generic[Text]):
    """The content of the document in the vault, and the lifetime of its certificates."""

    lifetimeDays: Annotated[int, AtLeast(2)]
    renewBeforeDays: Positive
    objectEncoding: str
    authorityHost: str
    clientId: Text


class RenewalScheduleInputs(ScheduledDocument[Text], Generic[Text]):
    """`mode: hold` keeps the current slots; `delivered` (`a1`) is what the last complete run left in the vault."""

    mode: Literal["auto", "hold"]
    delivered: NotRequired[str | None]


class RenewalScheduleOutputs(TypedDict, Generic[Text, JsonObject]):
    """The slot that is in the vault, or about to be; both slots, one without a certificate empty; and a description of
    the newest renewal. All are known in previews.
    """

    current: Text
    a: JsonObject
    b: JsonObject
    renewal: Text


class RenewalScheduleState(ScheduledDocument[str]):
    """Inputs after Check, in which a slot without a certificate is absent."""

    current: Literal["a", "b"]
    a: NotRequired[CertificateSlot]
    b: NotRequired[CertificateSlot]
    renewal: str
    delivered: NotRequired[DeliveryRecord]


class CertificateInputs(TypedDict, Generic[Text]):
    """Common name, key size and lifetime apply from the next generation of the slot on.

    `applicationId` is `/applications/<object id>`.
    """

    commonName: str
    keySize: int
    lifetimeDays: Positive
    generation: Positive
    notBefore: str
    cloud: str
    tenantId: str
    applicationId: Text


class CertificateOutputs(TypedDict, Generic[Text]):
    """`keyId` (UUID) is the one to register it under; `notAfter` is known in previews."""

    certificatePem: Text
    thumbprint: Text
    keyId: Text
    notAfter: Text


class SignInGateInputs(VaultAddress, Generic[Text]):
    """The secret is where the certificate is delivered. `registration` is the id under which the certificate is
    registered, which orders the gate after it. `successes` consecutive sign-ins with `scope`, spread over
    `settleSeconds`, have to succeed within `timeoutSeconds`.
    """

    authorityHost: str
    clientId: Text
    thumbprint: Text
    registration: Text
    scope: str
    successes: Positive
    settleSeconds: Natural
    timeoutSeconds: Positive


class SignInGateOutputs(TypedDict, Generic[Text]):
    """When the sign-in was proven."""

    provenAt: Text


class CredentialValidity(TypedDict, Generic[Text]):
    """The four dates of a credential document."""

    notBefore: Text
    notAfter: Text
    renewAfter: Text
    cannotRenewAfter: Text


class CredentialDocument(CredentialValidity[Text], Generic[Text]):
    """A document of a certificate that this run issued, or the one in `file`, without the optional keys.

    `generation` is slot and number (`a2`); `provenAt` orders the secret after its gate.
    """

    thumbprint: Text
    clientId: Text
    authorityHost: NotRequired[str]
    objectId: NotRequired[Text]
    generation: NotRequired[Text]
    provenAt: NotRequired[Text]
    file: NotRequired[str]


class CredentialSecretInputs(VaultAddress, SecretTags[Text], CredentialDocument[Text], Generic[Text]):
    """A secret of the vault, and the document in it."""

    objectEncoding: str


class CredentialSecretOutputs(TypedDict, Generic[Text]):
    """The version with the document, and when it was written."""

    version: Text
    secretUri: Text
    deliveredAt: Text


class CheckedCredentialSecret(CredentialSecretInputs[str]):
    """Inputs after Check. After a refresh `interrupted` marks a version that the state does not have: earlier ones may
    still be enabled.
    """

    enabled: bool
    interrupted: NotRequired[bool]


class CredentialSecretState(CheckedCredentialSecret, CredentialSecretOutputs[str]):
    """A secret in a state."""


class ClusterGateInputs(TypedDict, Generic[Text]):
    """A re-created cluster has another `clusterUid`; `hasAzureRbac` is whether Azure role assignments decide there.

    Each of `kinds`, which must be served, is `<group>/<version>/<plural>`.
    """

    clusterId: Text
    clusterUid: Text
    hasAzureRbac: bool
    kubeconfig: Text
    kinds: Sequence[str]
    timeoutSeconds: Positive


class ClusterGateOutputs(TypedDict, Generic[Text]):
    """When the cluster could be used."""

    openedAt: Text


class ClusterAddress(TypedDict, Generic[Text]):
    """How to reach a namespace of the management cluster; without `context`, by the kubeconfig's current one."""

    clusterId: str
    kubeconfig: Text
    context: NotRequired[str | None]
    namespace: str


class NamespaceGuardInputs(ClusterAddress[Text], Generic[Text]):
    """`handedOver` is whether the namespace is HyperShift's now, and the guard may go."""

    handedOver: bool


class HsmRoleAssignmentInputs(TypedDict, Generic[Text]):
    """`hsm` and `roleDefinition` (GUID) of a role; `scope` (`/keys/<key>`) and `name` (GUID) of its assignment.

    `principalId` is the object id of a service principal.
    """

    cloud: str
    tenantId: str
    hsm: str
    scope: str
    name: str
    roleDefinition: str
    principalId: Text


class SigningKeyInputs(VaultAddress, SecretTags[Text], Generic[Text]):
    """A key in the vault. `source` says who makes it: the plugin, or somebody else, in a file or in the vault.

    `file` is a path from the project's folder, `fileKeyId` the id of the key in it.
    """

    source: NotRequired[Literal["made", "file", "vault"]]
    file: NotRequired[str | None]
    fileKeyId: NotRequired[str | None]


class EncryptionKeyInputs(VaultAddress, SecretTags[Text], Generic[Text]):
    """A key in the vault that the plugin makes."""

    source: NotRequired[Literal["made"]]


class VaultKeyOutputs(TypedDict, Generic[Text]):
    """The outputs of every key."""

    keyId: Text
    version: Text


class CheckedVaultKey(SigningKeyInputs[str]):
    """Inputs of either key after Check. After a refresh `rewritten` marks a version that the state does not have."""

    enabled: bool
    rewritten: NotRequired[bool]


class SigningKeyOutputs(VaultKeyOutputs[Text], Generic[Text, JsonObject]):
    """`keyId` is the `kid` of the key's tokens, `jwk` (RFC 7517) its public half."""

    jwk: JsonObject
    publicKeyPem: Text


class PublishedKey(TypedDict, Generic[JsonObject]):
    """A key of an issuer."""

    generation: int
    jwk: JsonObject


class IssuerDocumentsInputs(TypedDict, Generic[JsonObject]):
    """The keys at an issuer's https address; `signing` is the generation that signs.

    Keys in `leaked` are removed without the waiting time of a rotation; they are not an output.
    """

    cloud: str
    tenantId: str
    issuer: str
    keys: Sequence[PublishedKey[JsonObject]]
    signing: Positive
    leaked: NotRequired[Sequence[Positive]]


class IssuerDocumentsOutputs(TypedDict):
    """When each generation was published, and when the signing one began to sign; both are known in previews."""

    publishedSince: Mapping[str, str]
    signingSince: str


class IssuerDocumentsState(IssuerDocumentsInputs[Mapping[str, Any]], IssuerDocumentsOutputs):
    """Inputs after Check, and the state. After a refresh `changed` marks that the issuer serves other documents."""

    changed: NotRequired[bool]


class KeySecretInputs(ClusterAddress[Text], VaultAddress, Generic[Text]):
    """The Kubernetes Secret `name` with the vault's key `keyId`."""

    name: str
    keyId: Text


class SigningKeySecretInputs(KeySecretInputs[Text], Generic[Text]):
    """The other keys whose tokens are in use, in PEM."""

    oldPublicKeys: Sequence[Text]


class KeySecretState(KeySecretInputs[str]):
    """Inputs after Check, and the state. After a refresh `changed` marks a Secret that holds something else."""

    oldPublicKeys: NotRequired[Sequence[str]]
    changed: NotRequired[bool]


class SecretAddresses(TypedDict):
    """The secrets that renewal schedules will ask for: `VaultAddress` with many names."""

    cloud: str
    tenantId: str
    vaultId: str
    secretNames: Sequence[str]


class ObstacleQuestion(TypedDict):
    """The resource providers that a run uses, what it writes to (ARM ids), and whether it makes Entra applications."""

    cloud: str
    tenantId: str
    subscriptionId: str
    namespaces: Sequence[str]
    scopes: Sequence[str]
    makesApplications: bool


class RegistrableCertificate(VaultAddress):
    """A certificate that is about to be registered, and the secret of its identity."""

    thumbprint: str
    notBefore: str
