"""Pulumi's import file (`pulumi import --file`) of the existing resources, and the providers that it names.

Format: pulumi/pulumi v3.259 `pkg/cmd/pulumi/operations/import.go`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from identity import resource_types
from ops.adoption.matching import Match
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import Plan, StateResource, name_of, provider_urn, resources_in, with_resources

# pulumi/pulumi `pkg/resource/deploy/providers/provider_keys.go`
_INTERNAL: Final = "__internal"


def import_file(plan: Plan, matches: Sequence[Match]) -> dict[str, Any]:
    """The existing resources with their parents as components, for `pulumi import --file`.

    A name in the file includes the type, because a program's names are unique per type.
    """
    by_urn = {step["urn"]: step["newState"] for step in plan["steps"] if "newState" in step}
    existing = [match for match in matches if match.id is not None]
    parents: dict[str, StateResource] = {}
    for match in existing:
        urn, ancestors = match.resource.get("parent", ""), []
        while urn in by_urn and "parent" in by_urn[urn]:
            ancestors.append(urn)
            urn = by_urn[urn]["parent"]
        parents |= {urn: by_urn[urn] for urn in reversed(ancestors)}
    new = {step["urn"] for step in plan["steps"] if step["op"] == "create"}
    table = {_key(parent): urn for urn, parent in parents.items() if urn not in new}
    resources = [_entry(parent, by_urn) | {"component": True} for urn, parent in parents.items() if urn in new]
    for match in existing:
        entry = _entry(match.resource, by_urn) | {"id": match.id}
        provider = provider_urn(match.resource.get("provider", ""))
        # An import takes a default provider by itself.
        if provider in by_urn:
            entry["provider"] = name_of(provider)
            table[name_of(provider)] = provider
        resources.append(entry)
    return {"nameTable": table, "resources": resources}


def entries(path: Path) -> list[dict[str, Any]]:
    """The entries of an import file; raises CommandError for another file."""
    return _read(path)[0]


def enter_providers(engine: Engine, path: Path) -> None:
    """Write the providers of an import file into the state, as the plan has them, unless the state has them.

    The engine creates them with the first `up`, but an import needs them before. Raises CommandError for a file that
    is no import file, and for a preview that fails.
    """
    _, urns = _read(path)
    state = engine.state()
    resources = resources_in(state)
    missing = urns - {resource["urn"] for resource in resources}
    if not missing:
        return
    new = {step["urn"]: step["newState"] for step in engine.planned()["steps"] if step["op"] == "create"}
    if unknown := missing - new.keys():
        raise CommandError(f"{path} names {', '.join(sorted(unknown))}, which the stack does not have; write it again")
    roots = [resource for resource in new.values() if resource["type"] == resource_types.STACK]
    entered = [*roots, *(_as_created(new[urn]) for urn in sorted(missing))]
    engine.replace_state(with_resources(state, [*entered, *resources]))


def _read(path: Path) -> tuple[list[dict[str, Any]], set[str]]:
    """The entries of an import file, and the URNs in its name table."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        resources = [{**resource, "type": str(resource["type"])} for resource in document["resources"]]
        return resources, set(document["nameTable"].values())
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError):
        raise CommandError(
            f"{path} is not an import file; `idstack import scripts` or `idstack import iam` writes one"
        ) from None


def _as_created(provider: StateResource) -> StateResource:
    """The provider as the engine writes it: its outputs are its inputs except the engine's own."""
    outputs = {name: value for name, value in provider.get("inputs", {}).items() if name != _INTERNAL}
    return {**provider, "id": str(uuid.uuid4()), "outputs": outputs}


def _entry(resource: StateResource, by_urn: Mapping[str, StateResource]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": resource["type"], "name": _key(resource), "logicalName": name_of(resource["urn"])}
    parent = by_urn.get(resource.get("parent", ""))
    # The stack itself has no parent, and is no entry.
    if parent is not None and "parent" in parent:
        entry["parent"] = _key(parent)
    return entry


def _key(resource: StateResource) -> str:
    return f"{name_of(resource['urn'])} ({resource['type']})"
