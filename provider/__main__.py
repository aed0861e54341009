"""`pulumi-resource-idstack`: the provider with its resource types, served to the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from identity import resource_types
from identity.version import read_version
from plugin import PluginError, Props, Provider, Resource, serve
from provider.certificate import CertificateResource
from provider.cloud import find_obstacles
from provider.credential_secret import CredentialSecretResource
from provider.hsm_role_assignment import HsmRoleAssignmentResource
from provider.issuer_documents import IssuerDocumentsResource
from provider.kubernetes_key import KubernetesEtcdKeyResource, KubernetesSigningKeyResource
from provider.namespace_guard import NamespaceGuardResource, StackOwnerResource
from provider.renewal_schedule import RenewalScheduleResource
from provider.sign_in_gate import ClusterGateResource, SignInGateResource, require_registrable
from provider.vault_key import VaultEtcdKeyResource, VaultSigningKeyResource
from provider.vault_secrets import SecretPrefetch

_PREFETCH: Final = SecretPrefetch()
RESOURCES: Final[dict[str, Resource]] = {
    resource_types.RENEWAL_SCHEDULE: RenewalScheduleResource(_PREFETCH),
    resource_types.CERTIFICATE: CertificateResource(),
    resource_types.SIGN_IN_GATE: SignInGateResource(),
    resource_types.CREDENTIAL_SECRET: CredentialSecretResource(),
    resource_types.CLUSTER_GATE: ClusterGateResource(),
    resource_types.NAMESPACE_GUARD: NamespaceGuardResource(),
    resource_types.SIGNING_KEY: VaultSigningKeyResource(),
    resource_types.ISSUER_DOCUMENTS: IssuerDocumentsResource(),
    resource_types.SIGNING_KEY_SECRET: KubernetesSigningKeyResource(),
    resource_types.ENCRYPTION_KEY: VaultEtcdKeyResource(),
    resource_types.ENCRYPTION_KEY_SECRET: KubernetesEtcdKeyResource(),
    resource_types.HSM_ROLE_ASSIGNMENT: HsmRoleAssignmentResource(),
    resource_types.STACK_OWNER: StackOwnerResource(),
}
# A refusal is an error.
FUNCTIONS: Final[dict[str, Callable[[Any], Props | None]]] = {
    resource_types.FIND_OBSTACLES: find_obstacles,
    resource_types.PREFETCH_SECRETS: _PREFETCH.start,
    resource_types.REQUIRE_REGISTRABLE: require_registrable,
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
        """Run one of `FUNCTIONS`; raises `PluginError` for any other function."""
        function = FUNCTIONS.get(token)
        if function is None:
            return super().invoke(token, args)
        return function(args) or {}


if __name__ == "__main__":
    serve(IdstackProvider())
