"""The providers of an import: the engine makes them with the first `up`, and an import wants them before."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Final

from identity import resource_types
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import StateResource

# pulumi/pulumi `pkg/resource/deploy/providers/provider_keys.go`
_INTERNAL: Final = "__internal"


def enter_providers(engine: Engine, path: Path) -> None:
    """Write the providers that an import file names into the state, as the plan has them, unless they are there.

    Raises CommandError for a file that is not one, and for a preview that fails.
    """
    try:
        named = set(json.loads(path.read_text(encoding="utf-8"))["nameTable"].values())
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError):
        raise CommandError(f"{path} is not an import file; `idstack import scripts` writes one") from None
    state = engine.state()
    resources = state["deployment"].get("resources") or []
    missing = named - {each["urn"] for each in resources}
    if not missing:
        return
    new = {each["urn"]: each["newState"] for each in engine.planned()["steps"] if each["op"] == "create"}
    if unknown := missing - new.keys():
        raise CommandError(f"{path} names {', '.join(sorted(unknown))}, which the stack does not have; write it again")
    roots = [each for each in new.values() if each["type"] == resource_types.STACK]
    entered = [*roots, *(_made(new[urn]) for urn in sorted(missing))]
    engine.replace_state({**state, "deployment": {**state["deployment"], "resources": [*entered, *resources]}})


def _made(provider: StateResource) -> StateResource:
    """The provider as the engine writes it: its outputs are its inputs but for the engine's own."""
    outputs = {name: value for name, value in provider.get("inputs", {}).items() if name != _INTERNAL}
    return {**provider, "id": str(uuid.uuid4()), "outputs": outputs}
