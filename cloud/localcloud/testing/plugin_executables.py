"""Executables that answer as provider plugins do, for tests of how a real plugin is found and started."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

# Serves the question for the version; started by an engine, it first notes its arguments and environment.
_PLUGIN: Final = """\
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
    plugin.write_text(_PLUGIN.format(python=sys.executable, version=version, folder=str(folder)))
    plugin.chmod(0o755)
    return plugin
