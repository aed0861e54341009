"""What a plan would create although its creation may have begun already, and the state with it or without others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

# A resource as the state and plans write it (pulumi/pulumi `sdk/go/common/apitype/core.go`, ResourceV3).
Resource: TypeAlias = Mapping[str, Any]

# In a plan: what it does not show, and what is not known before the update.
_MASKED: Final = "[secret]"
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


@dataclass(frozen=True)
class Orphan:
    """A resource out of a plan, and the provider's id of the thing that it would have made once more."""

    resource: Resource
    id: str

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return str(self.resource["urn"].rpartition("::")[2])


def candidates(plan: Mapping[str, Any], resources: Sequence[Resource]) -> Iterator[Resource]:
    """The resources that the plan creates and whose creation may have begun, inputs as far as the plan shows them.

    The engine begins one when all it depends on is there, so that lies in the state if anything was begun.
    """
    there = {each["urn"] for each in resources}
    for step in plan["steps"]:
        if step["op"] == "create" and step["newState"]["custom"] and _needs(step["newState"]) <= there:
            yield {**step["newState"], "inputs": _shown(step["newState"].get("inputs", {}))}


def ids(resources: Sequence[Resource]) -> set[tuple[str, str]]:
    """Type and provider's id of all resources. A Secret may have the id of a ConfigMap."""
    return {(each["type"], each["id"]) for each in resources if "id" in each}


def unmarked(state: Mapping[str, Any]) -> dict[str, Any]:
    """The `state` without the engine's marks of what a replacement has deleted first (`pendingReplacement`).

    A refresh reads nothing that is marked. Without the mark it tells: what is gone leaves the state, so that a plan
    creates it anew, and whoever was made in its place is found; what has the same id as before is there already.
    """
    resources = state["deployment"].get("resources") or ()
    kept = [{key: value for key, value in each.items() if key != "pendingReplacement"} for each in resources]
    return {**state, "deployment": {**state["deployment"], "resources": kept}} if kept else dict(state)


def settled(state: Mapping[str, Any], found: Sequence[Orphan]) -> dict[str, Any]:
    """The refreshed `state` with what was found, as the engine would have written it.

    Outputs are read by the next command (`refreshBeforeUpdate`), with the inputs standing in for them until then. A
    secret is not among the inputs, so the next `up` sees a difference and writes it once more.
    """
    entered = [
        {**each.resource, "id": each.id, "outputs": each.resource["inputs"], "refreshBeforeUpdate": True}
        for each in found
    ]
    resources = [*(state["deployment"].get("resources") or ()), *entered]
    return {**state, "deployment": {**state["deployment"], "resources": resources}}


def without(state: Mapping[str, Any], urns: Collection[str]) -> dict[str, Any]:
    """The `state` without these resources, and nothing in it that depends on them."""
    kept = [
        {
            **each,
            "dependencies": [urn for urn in each.get("dependencies") or () if urn not in urns],
            "propertyDependencies": {
                name: [urn for urn in needed or () if urn not in urns]
                for name, needed in (each.get("propertyDependencies") or {}).items()
            },
        }
        for each in state["deployment"].get("resources") or ()
        if each["urn"] not in urns
    ]
    return {**state, "deployment": {**state["deployment"], "resources": kept}}


def _needs(resource: Resource) -> set[str]:
    """URNs of what has to be there first."""
    provider = resource.get("provider", "").rpartition("::")[0]
    return {*(resource.get("dependencies") or ()), resource.get("parent", ""), provider} - {""}


def _shown(value: Any) -> Any:
    """The value without what the plan masks or does not know."""
    if isinstance(value, Mapping):
        return {key: _shown(each) for key, each in value.items() if each not in (_MASKED, _UNKNOWN)}
    if isinstance(value, list):
        return [_shown(each) for each in value if each not in (_MASKED, _UNKNOWN)]
    return value
