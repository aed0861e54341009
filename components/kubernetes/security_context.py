"""What every pod of the stack may not do: no privilege, no capability, no writing to its image."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

# Nobody: an id that no image and no node gives a meaning.
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
