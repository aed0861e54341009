"""The emulated provider plugins, and calls to a plugin as the engine makes them (extra `plugins` of this package)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from emulated.azure_native.provider import ArmResource, ArmSession
from emulated.azure_native.table import RESOURCES as AZURE_NATIVE
from emulated.azure_native.table import ResourceRow
from emulated.azuread.provider import RESOURCES as AZUREAD
from emulated.azuread.provider import AzureAd
from emulated.client import AzureProviderSettings, RefusalError
from emulated.kubernetes import provider as kubernetes_resource
from emulated.kubernetes.provider import Kubernetes
from plugin import Created, PropertyChange, Props, Provider, ReadResult, contains_unknown

__all__ = [
    "AZUREAD",
    "AZURE_NATIVE",
    "ArmResource",
    "ArmSession",
    "AzureAd",
    "AzureProviderSettings",
    "Kubernetes",
    "RefusalError",
    "ResourceRow",
    "changes",
    "checked",
    "create",
    "delete",
    "import_by_id",
    "kubernetes_resource",
    "read",
    "refresh",
    "update",
    "urn",
    "write_plugin",
]

# Serves the question for the version; started by an engine, it first notes its arguments and environment.
_EXECUTABLE: Final = """\
#!{python}
import json, os, sys
from concurrent import futures
from pathlib import Path
import grpc
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc

class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version={version!r})

if sys.argv[1:]:
    Path({folder!r}, "started.json").write_text(json.dumps([sys.argv[1:], dict(os.environ)]))
    sys.exit(7)
server = grpc.server(futures.ThreadPoolExecutor())
provider_pb2_grpc.add_ResourceProviderServicer_to_server(Plugin(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
server.wait_for_termination()
"""


def write_plugin(folder: Path, name: str, version: str) -> Path:
    """Write `pulumi-resource-<name>`, which states this version; with arguments it leaves `started.json`, code 7."""
    folder.mkdir(parents=True, exist_ok=True)
    plugin = folder / f"pulumi-resource-{name}"
    plugin.write_text(_EXECUTABLE.format(python=sys.executable, version=version, folder=str(folder)))
    plugin.chmod(0o755)
    return plugin


def urn(token: str) -> str:
    """An URN of a resource of this type."""
    return f"urn:pulumi:test::project::{token}::name"


def checked(provider: Provider, token: str, inputs: Props, old: Props | None = None) -> Props:
    """The inputs after Check, which must not complain."""
    result = provider.resource(token).check(urn(token), old, inputs)
    assert not result.failures, result.failures
    return result.inputs


def create(provider: Provider, token: str, inputs: Props) -> tuple[Props, Created]:
    """Check, then create: the checked inputs and what came of them."""
    known = checked(provider, token, inputs)
    created = provider.resource(token).create(urn(token), known, preview=False)
    assert not contains_unknown(created.state)
    return known, created


def read(provider: Provider, token: str, inputs: Props, created: Created) -> ReadResult | None:
    """A refresh of what `create` returned."""
    return provider.resource(token).read(urn(token), created.id, inputs, created.state)


def refresh(provider: Provider, token: str, inputs: Props, created: Created) -> ReadResult:
    """A refresh of what must be there."""
    found = read(provider, token, inputs, created)
    assert found is not None
    return found


def import_by_id(provider: Provider, token: str, id: str) -> ReadResult:
    """An import of what must be there."""
    return refresh(provider, token, {}, Created(id, {}))


def changes(
    provider: Provider, token: str, inputs: Props, there: Created | ReadResult, new: Props
) -> dict[str, PropertyChange]:
    """What differs between a resource that is there and the new inputs."""
    return dict(provider.resource(token).diff(urn(token), there.id, inputs, there.state, new).changes)


def update(provider: Provider, token: str, inputs: Props, there: Created | ReadResult, new: Props) -> Props:
    """The state after an update."""
    return provider.resource(token).update(urn(token), there.id, inputs, there.state, new, preview=False)


def delete(provider: Provider, token: str, inputs: Props, created: Created) -> None:
    """Delete what `create` returned."""
    provider.resource(token).delete(urn(token), created.id, inputs, created.state)
