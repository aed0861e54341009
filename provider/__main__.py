"""`pulumi-resource-idstack`: the provider with its resource types, served to the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from identity.version import read_version
from plugin import PluginError, Props, Provider, Resource, serve
from provider.certificate import CertificateResource
from provider.cluster_gate import ClusterGateResource
from provider.credential_secret import CredentialSecretResource
from provider.early_looks import LOOK_AT_SECRETS, EarlyLooks
from provider.encryption_key import EncryptionKeyResource
from provider.encryption_key_secret import EncryptionKeySecretResource
from provider.hsm_role_assignment import HsmRoleAssignmentResource
from provider.issuer_documents import IssuerDocumentsResource
from provider.namespace_guard import NamespaceGuardResource
from provider.registration_proof import REQUIRE_REGISTRABLE, require_registrable
from provider.renewal_schedule import RenewalScheduleResource
from provider.sign_in_gate import SignInGateResource
from provider.signing_key import SigningKeyResource
from provider.signing_key_secret import SigningKeySecretResource
from provider.stack_owner import StackOwnerResource

_LOOKS: Final = EarlyLooks()
RESOURCES: Final[dict[str, Resource]] = {
    "idstack:index:RenewalSchedule": RenewalScheduleResource(_LOOKS),
    "idstack:index:Certificate": CertificateResource(),
    "idstack:index:SignInGate": SignInGateResource(),
    "idstack:index:CredentialSecret": CredentialSecretResource(),
    "idstack:index:ClusterGate": ClusterGateResource(),
    "idstack:index:NamespaceGuard": NamespaceGuardResource(),
    "idstack:index:SigningKey": SigningKeyResource(),
    "idstack:index:IssuerDocuments": IssuerDocumentsResource(),
    "idstack:index:SigningKeySecret": SigningKeySecretResource(),
    "idstack:index:EncryptionKey": EncryptionKeyResource(),
    "idstack:index:EncryptionKeySecret": EncryptionKeySecretResource(),
    "idstack:index:HsmRoleAssignment": HsmRoleAssignmentResource(),
    "idstack:index:StackOwner": StackOwnerResource(),
}
# What a program asks besides; nothing comes back but a refusal.
FUNCTIONS: Final[dict[str, Callable[[Props], None]]] = {
    LOOK_AT_SECRETS: _LOOKS.begin,
    REQUIRE_REGISTRABLE: require_registrable,
}


class IdstackProvider(Provider):
    """Hands out the resource types; the provider itself has no configuration."""

    name = "idstack"
    version = read_version()

    def resource(self, type_token: str) -> Resource:
        """The resource behind a type token; raises `PluginError` with the known types for any other."""
        try:
            return RESOURCES[type_token]
        except KeyError:
            raise PluginError(f'the idstack plugin has no "{type_token}": it has {", ".join(RESOURCES)}') from None

    def invoke(self, token: str, args: Props) -> Props:
        """Begin looks at secrets (`provider/early_looks.py`), or require that a certificate may be registered
        (`provider/registration_proof.py`); raises `PluginError` for any other function.
        """
        function = FUNCTIONS.get(token)
        if function is None:
            return super().invoke(token, args)
        function(args)
        return {}


if __name__ == "__main__":
    serve(IdstackProvider())
