"""Programs that end in a report before anything but the providers is registered."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.components.program import Program

PROVIDERS: Final = ["pulumi:providers:azure-native azure", "pulumi:providers:azuread entra"]
GONE: Final = Exception('Status=404 Code="ResourceNotFound" Message="The Resource was not found."')


def refused(program: Program, **arguments: Any) -> list[tuple[str, str]]:
    """Place and rule of each problem; nothing but the providers was registered."""
    recorder = program(options={"refused": True}, **arguments)
    assert recorder.failure is not None, "everything was accepted"
    assert recorder.names() == PROVIDERS
    return recorder.problems
