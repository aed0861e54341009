"""The security context of every pod of the stack: no privilege, no capability, a read-only image."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

# The id of nobody: no image and no node uses it.
_USER: Final = 65532

POD_SECURITY: Final = MappingProxyType[str, Any](
    {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
)
CONTAINER_SECURITY: Final = MappingProxyType[str, Any](
    {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
)
