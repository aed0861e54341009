"""An `up` that Azure RBAC stopped on the management cluster: the engine's messages do not name what is missing."""

from __future__ import annotations

from collections.abc import Iterable

from identity.access.azure_rbac import DENIAL


def hint(lines: Iterable[str], stack: str) -> str | None:
    """What to do, if the lines of the engine's event log have such a refusal, else None."""
    if not any(DENIAL in line for line in lines):
        return None
    return (
        "Azure RBAC decides on the management cluster, and the deployer lacks a role assignment there. "
        f"`.venv/bin/idstack doctor --stage access --stack {stack}` prints the one that is missing; it takes up to "
        "five minutes, then run the command again"
    )
