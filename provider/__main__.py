"""`pulumi-resource-idstack`: the provider with its four resource types, served to the engine."""

from __future__ import annotations

from typing import Final

from plugin import PluginError, Provider, Resource, serve
from provider.certificate import CertificateResource
from provider.cluster_gate import ClusterGateResource
from provider.renewal_schedule import RenewalScheduleResource
from provider.sign_in_gate import SignInGateResource

RESOURCES: Final[dict[str, Resource]] = {
    "idstack:index:RenewalSchedule": RenewalScheduleResource(),
    "idstack:index:Certificate": CertificateResource(),
    "idstack:index:SignInGate": SignInGateResource(),
    "idstack:index:ClusterGate": ClusterGateResource(),
}


class IdstackProvider(Provider):
    """Hands out the four resource types; the provider itself has no configuration."""

    name = "idstack"
    version = "0.1.0"

    def resource(self, type_token: str) -> Resource:
        """The resource behind a type token; raises `PluginError` with the known types for any other."""
        try:
            return RESOURCES[type_token]
        except KeyError:
            raise PluginError(f'the idstack plugin has no "{type_token}": it has {", ".join(RESOURCES)}') from None


if __name__ == "__main__":
    serve(IdstackProvider())
