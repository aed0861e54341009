"""The resources of the project's own provider plugin. `identity/plugin_schema.py` has their inputs and outputs.

The modules in `provider/` describe what the resources do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, Unpack, cast

import pulumi

from identity import plugin_schema as schema
from identity import resource_types

_Outputs = TypeVar("_Outputs")
_In: TypeAlias = pulumi.Input[str]
_Out: TypeAlias = pulumi.Output[str]
_Options: TypeAlias = pulumi.ResourceOptions | None


class PluginResource(pulumi.CustomResource, Generic[_Outputs]):
    """A resource of the plugin; every input is an output as well, and a kubeconfig is secret as both."""

    token: ClassVar[str]
    # The TypedDict of the outputs that are no inputs.
    extra_outputs: ClassVar[Any] = None

    def __init__(self, name: str, opts: _Options, inputs: Mapping[str, Any]) -> None:
        secret = [schema.SECRET_INPUT] if schema.SECRET_INPUT in inputs else None
        options = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=secret))
        outputs = () if self.extra_outputs is None else self.extra_outputs.__annotations__
        super().__init__(self.token, name, {**inputs, **dict.fromkeys(outputs)}, options)

    @property
    def outputs(self) -> _Outputs:
        """The outputs that are no inputs."""
        return cast(_Outputs, vars(self))


class StackOwner(PluginResource[schema.StackOwnerOutputs[_Out]]):
    """The id that tells the stack's things in Azure from every other stack's (`provider/namespace_guard.py`)."""

    token = resource_types.STACK_OWNER
    extra_outputs = schema.StackOwnerOutputs

    def __init__(self, name: str, /, opts: _Options = None) -> None:
        super().__init__(name, opts, {})


class RenewalSchedule(PluginResource[schema.RenewalScheduleOutputs[_Out, pulumi.Output[schema.CertificateSlot]]]):
    """Decides by the vault which of two certificate slots is issued again when (`provider/renewal_schedule.py`)."""

    token = resource_types.RENEWAL_SCHEDULE
    extra_outputs = schema.RenewalScheduleOutputs

    def __init__(
        self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.RenewalScheduleInputs[_In]]
    ) -> None:
        super().__init__(name, opts, inputs)


class Certificate(PluginResource[schema.CertificateOutputs[_Out]]):
    """A self-signed RSA client certificate (`provider/certificate.py`); a new generation replaces it.

    Its key is in the plugin's memory until the vault has it.
    """

    token = resource_types.CERTIFICATE
    extra_outputs = schema.CertificateOutputs

    def __init__(self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.CertificateInputs[_In]]) -> None:
        super().__init__(name, opts, inputs)


class SignInGate(PluginResource[schema.SignInGateOutputs[_Out]]):
    """Proves that Entra ID knows a certificate before anything relies on it (`provider/sign_in_gate.py`)."""

    token = resource_types.SIGN_IN_GATE
    extra_outputs = schema.SignInGateOutputs

    def __init__(self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.SignInGateInputs[_In]]) -> None:
        super().__init__(name, opts, inputs)


class CredentialSecret(PluginResource[schema.CredentialSecretOutputs[_Out]]):
    """A Key Vault secret with a credential document (`provider/credential_secret.py`)."""

    token = resource_types.CREDENTIAL_SECRET
    extra_outputs = schema.CredentialSecretOutputs

    def __init__(
        self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.CredentialSecretInputs[_In]]
    ) -> None:
        super().__init__(name, opts, inputs)


class ClusterGate(PluginResource[schema.ClusterGateOutputs[_Out]]):
    """Proves that a new management cluster can be used (`provider/sign_in_gate.py`): name it in `depends_on`."""

    token = resource_types.CLUSTER_GATE
    extra_outputs = schema.ClusterGateOutputs

    def __init__(self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.ClusterGateInputs[_In]]) -> None:
        super().__init__(name, opts, inputs)


class NamespaceGuard(PluginResource[None]):
    """Refuses its deletion while HyperShift has a control plane in the namespace (`provider/namespace_guard.py`).

    Name in `depends_on` whatever must not be deleted before it.
    """

    token = resource_types.NAMESPACE_GUARD

    def __init__(self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.NamespaceGuardInputs[_In]]) -> None:
        super().__init__(name, opts, inputs)


class HsmRoleAssignment(PluginResource[None]):
    """A role in a managed HSM (`provider/hsm_role_assignment.py`)."""

    token = resource_types.HSM_ROLE_ASSIGNMENT

    def __init__(
        self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.HsmRoleAssignmentInputs[_In]]
    ) -> None:
        super().__init__(name, opts, inputs)


class SigningKey(PluginResource[schema.SigningKeyOutputs[_Out, pulumi.Output[Mapping[str, Any]]]]):
    """A key that signs service-account tokens, in the vault (`provider/vault_key.py`)."""

    token = resource_types.SIGNING_KEY
    extra_outputs = schema.SigningKeyOutputs

    def __init__(self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.SigningKeyInputs[_In]]) -> None:
        super().__init__(name, opts, inputs)


class IssuerDocuments(PluginResource[schema.IssuerDocumentsOutputs]):
    """The discovery document and the keys of an issuer (`provider/issuer_documents.py`)."""

    token = resource_types.ISSUER_DOCUMENTS
    extra_outputs = schema.IssuerDocumentsOutputs

    def __init__(
        self,
        name: str,
        /,
        opts: _Options = None,
        **inputs: Unpack[schema.IssuerDocumentsInputs[pulumi.Input[Mapping[str, Any]]]],
    ) -> None:
        super().__init__(name, opts, inputs)


class EncryptionKey(PluginResource[schema.VaultKeyOutputs[_Out]]):
    """A key in the vault that encrypts a hosted cluster's etcd (`provider/vault_key.py`)."""

    token = resource_types.ENCRYPTION_KEY
    extra_outputs = schema.VaultKeyOutputs

    def __init__(self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.EncryptionKeyInputs[_In]]) -> None:
        super().__init__(name, opts, inputs)


class SigningKeySecret(PluginResource[None]):
    """The Kubernetes Secret with a signing key (`provider/kubernetes_key.py`)."""

    token = resource_types.SIGNING_KEY_SECRET

    def __init__(
        self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.SigningKeySecretInputs[_In]]
    ) -> None:
        super().__init__(name, opts, inputs)


class EncryptionKeySecret(PluginResource[None]):
    """The Kubernetes Secret with the key of etcd (`provider/kubernetes_key.py`)."""

    token = resource_types.ENCRYPTION_KEY_SECRET

    def __init__(self, name: str, /, opts: _Options = None, **inputs: Unpack[schema.KeySecretInputs[_In]]) -> None:
        super().__init__(name, opts, inputs)
