"""`pulumi-resource-kubernetes`, emulated: one resource per type token, whatever kinds the API server serves."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Final

from emulated.kubernetes.client import Api, KubernetesProviderSettings, is_the_same_cluster, refusal
from emulated.kubernetes.resource import ClusterSession, ObjectResource
from plugin import Checked, CheckFailure, PluginError, Props, Provider, Resource

# kubernetes:<group>/<version>:<Kind>; the core group is called `core`.
_TOKEN: Final = re.compile(r"kubernetes:(?P<group>[^:/]+)/(?P<version>v\d[^:/]*):(?P<kind>[A-Z]\w*)")


class Kubernetes(Provider):
    """The provider. It has no functions."""

    name = "kubernetes"
    version = metadata.version("pulumi-kubernetes")

    def __init__(self) -> None:
        self._session: ClusterSession | None = None
        self._is_configured = False

    def check_config(self, urn: str, old: Props | None, new: Props) -> Checked:
        problem = refusal(new)
        # Without a property name the engine prints the reason alone, not the kubeconfig.
        return Checked(new, (CheckFailure("", problem),) if problem else ())

    def replacing(self, old: Props, new: Props) -> tuple[str, ...]:
        return () if is_the_same_cluster(old, new) else ("kubeconfig",)

    def configure(self, inputs: Props) -> None:
        settings = KubernetesProviderSettings.load(inputs)
        self._session = None if settings is None else ClusterSession(settings, Api(settings.connection))
        self._is_configured = True

    def resource(self, type_token: str) -> Resource:
        match = _TOKEN.fullmatch(type_token)
        if match is None:
            raise PluginError(f'the emulated kubernetes plugin does not have the resource type "{type_token}"')
        group, version = match["group"], match["version"]
        return ObjectResource(version if group == "core" else f"{group}/{version}", match["kind"], self._open_session)

    def _open_session(self) -> ClusterSession | None:
        if not self._is_configured:
            raise PluginError("the kubernetes provider is not configured")
        return self._session
