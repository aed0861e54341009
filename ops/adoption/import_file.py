"""Pulumi's import file (`pulumi import --file`) of the resources that exist already.

Format: pulumi/pulumi v3.259 `pkg/cmd/pulumi/operations/import.go`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ops.adoption.matching import Match
from ops.stack.errors import CommandError
from ops.stack.state import Plan, StateResource, name_of, provider_urn


def import_file(plan: Plan, matches: Sequence[Match]) -> dict[str, Any]:
    """What `pulumi import --file` takes: everything that was found, with its parents as components.

    A resource's name in the file has its type in it, because names are unique for each type alone.
    """
    by_urn = {each["urn"]: each["newState"] for each in plan["steps"] if "newState" in each}
    found = [each for each in matches if each.id is not None]
    parents: dict[str, StateResource] = {}
    for each in found:
        urn, line = each.resource.get("parent", ""), []
        while urn in by_urn and "parent" in by_urn[urn]:
            line.append(urn)
            urn = by_urn[urn]["parent"]
        parents |= {urn: by_urn[urn] for urn in reversed(line)}
    new = {each["urn"] for each in plan["steps"] if each["op"] == "create"}
    table = {_key(each): urn for urn, each in parents.items() if urn not in new}
    resources = [_entry(each, by_urn) | {"component": True} for urn, each in parents.items() if urn in new]
    for each in found:
        entry = _entry(each.resource, by_urn) | {"id": each.id}
        provider = provider_urn(each.resource.get("provider", ""))
        # An import takes a default provider by itself.
        if provider in by_urn:
            entry["provider"] = name_of(provider)
            table[name_of(provider)] = provider
        resources.append(entry)
    return {"nameTable": table, "resources": resources}


def entries(path: Path) -> list[dict[str, Any]]:
    """What an import file names; raises CommandError for a file that is not one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        found = [dict(each) for each in document["resources"]]
        document["nameTable"].values()
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError):
        raise CommandError(
            f"{path} is not an import file; `idstack import scripts` or `idstack import iam` writes one"
        ) from None
    return found


def _entry(resource: StateResource, by_urn: Mapping[str, StateResource]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": resource["type"],
        "name": _key(resource),
        "logicalName": name_of(resource["urn"]),
    }
    parent = by_urn.get(resource.get("parent", ""))
    # The stack itself is everything's parent.
    if parent is not None and "parent" in parent:
        entry["parent"] = _key(parent)
    return entry


def _key(resource: StateResource) -> str:
    return f"{name_of(resource['urn'])} ({resource['type']})"
