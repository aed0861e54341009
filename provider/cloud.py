"""The cloud in which a resource lives, and requests to it as the identity that runs the engine."""

from __future__ import annotations

import os
import threading
from typing import Final

from identity.azure.client import AzureClient
from identity.azure.connection import connected
from identity.azure.errors import LoginRefusedError
from identity.clouds import LOCAL_CLOUD
from plugin import PluginError

# A client for each cloud and tenant keeps its connections and tokens as long as the plugin runs.
_CLIENTS: Final[dict[tuple[str, str], AzureClient]] = {}
_LOCK: Final = threading.Lock()


def client(cloud: str, tenant_id: str) -> AzureClient:
    """Requests in the cloud of that name (`identity/clouds.py`); raises `PluginError` for an unknown one."""
    with _LOCK:
        if (cloud, tenant_id) not in _CLIENTS:
            try:
                _CLIENTS[cloud, tenant_id] = connected(cloud, tenant_id, os.environ)
            except LoginRefusedError as error:
                raise PluginError(str(error)) from None
        return _CLIENTS[cloud, tenant_id]


def command_line(cloud: str, command: str) -> str:
    """An Azure command line as a person types it for that cloud; the local cloud needs its environment."""
    return f".venv/bin/idstack local exec -- {command}" if cloud == LOCAL_CLOUD else command
