"""Reads objects of any kind from the management cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from identity.aks.api_server import ApiServer
from identity.azure.errors import AccessError
from ops.access.management_cluster import api_server
from ops.stack.engine import Engine
from ops.stack.errors import CommandError


class KubernetesObjects:
    """The objects behind an API server; safe for many threads."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._served: dict[str, dict[str, str]] = {}
        self._reading = Lock()

    def has(self, api_version: str, kind: str, namespace: str | None, name: str) -> bool:
        """Whether there is such an object; `namespace` is None for a cluster-scoped kind.

        Raises CommandError if the API answers neither yes nor no.
        """
        try:
            plural = self._plurals(api_version).get(kind)
            if plural is None:
                return False
            path = f"{_base(api_version)}{f'/namespaces/{namespace}' if namespace else ''}/{plural}/{name}"
            return self._server.read(path) is not None
        except AccessError as error:
            raise CommandError(f"reading {kind} {name} from the management cluster: {error}") from None

    def _plurals(self, api_version: str) -> dict[str, str]:
        """The plural names of a version's kinds; read once."""
        with self._reading:
            if api_version not in self._served:
                served: dict[str, Any] = self._server.read(_base(api_version)) or {}
                self._served[api_version] = {
                    resource["kind"]: resource["name"]
                    for resource in served.get("resources", ())
                    if "/" not in resource["name"]
                }
            return self._served[api_version]


@contextmanager
def management_cluster(engine: Engine) -> Iterator[KubernetesObjects]:
    """The objects of the management cluster, with the stack's sign-in. Raises as `api_server`, and for a refusal."""
    with api_server(engine) as server:
        server.check_sign_in()
        yield KubernetesObjects(server)


def _base(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
