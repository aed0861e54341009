"""Refuses to take a stack down while HyperShift has a control plane in one of its namespaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from identity.access.control_planes import control_planes, refusal, unreadable
from identity.access.errors import AccessError
from ops.access.management_cluster import api_server
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import StateResource

_NAMESPACE: Final = "kubernetes:core/v1:Namespace"


def require_no_control_plane(engine: Engine) -> None:
    """Raise CommandError if `destroy` would delete a namespace with a control plane, or if that cannot be seen.

    The engine does not run the program then, and a stack of an earlier release has no guard in its state.
    """
    namespaces = _deleted_namespaces(engine.resources())
    if not namespaces:
        return
    try:
        with api_server(engine) as server:
            found = control_planes(server, namespaces)
    except (AccessError, CommandError) as error:
        raise CommandError(unreadable(namespaces, error)) from None
    if found:
        raise CommandError(refusal(found, engine.stack))


def _deleted_namespaces(resources: Iterable[StateResource]) -> list[str]:
    """The namespaces in the state, but for those that were handed over."""
    return [
        each["inputs"]["metadata"]["name"]
        for each in resources
        if each["type"] == _NAMESPACE and not each.get("retainOnDelete")
    ]
