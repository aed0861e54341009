"""Which creates of a plan may have begun already, and states with some resources more; all of it computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ops.stack.state import UNKNOWN, Plan, State, StateResource, name_of, provider_urn

# A secret in a plan.
_MASKED: Final = "[secret]"


@dataclass(frozen=True)
class Orphan:
    """A resource out of a plan, and the provider's id of the thing that it would have made once more."""

    resource: StateResource
    id: str

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return name_of(self.resource["urn"])


def certificates_since(stack: str) -> str:
    """What to say of a state that may be older than a renewal: no plan shows what that one has registered."""
    return (
        "what a renewal has registered since then at Entra ID stays there; "
        f"`.venv/bin/idstack sweep --stack {stack}` lists it, and deletes it once no pod can use it"
    )


def candidates(plan: Plan, resources: Sequence[StateResource]) -> Iterator[StateResource]:
    """The resources that the plan creates and whose creation may have begun, with the inputs that the plan shows.

    The engine begins to create a resource once everything that it depends on exists, and is in the state.
    """
    there = {each["urn"] for each in resources}
    for step in plan["steps"]:
        if step["op"] == "create" and step["newState"]["custom"] and _needs(step["newState"]) <= there:
            yield {**step["newState"], "inputs": shown(step["newState"].get("inputs", {}))}


def ids(resources: Sequence[StateResource]) -> set[tuple[str, str]]:
    """Type and provider's id of all resources. A Secret may have the id of a ConfigMap."""
    return {(each["type"], each["id"]) for each in resources if "id" in each}


def unmarked(state: State) -> State:
    """The `state` without the engine's mark of what a replacement has deleted first (`pendingReplacement`).

    A refresh does not read what is marked. Without the mark, what is gone leaves the state, so that a plan creates it
    again and its replacement, if it was made, is found; what has the same id as before stays.
    """
    resources = state["deployment"].get("resources") or ()
    kept = [each.copy() for each in resources]
    for each in kept:
        each.pop("pendingReplacement", None)
    return {**state, "deployment": {**state["deployment"], "resources": kept}} if kept else state


def settled(state: State, found: Sequence[Orphan]) -> State:
    """The refreshed `state` with what was found, as the engine would have written it.

    The next command reads the outputs (`refreshBeforeUpdate`); until then the inputs take their place. A secret is not
    among the inputs, so the next `up` sees a difference and writes it again.
    """
    entered: list[StateResource] = [
        {**each.resource, "id": each.id, "outputs": each.resource["inputs"], "refreshBeforeUpdate": True}
        for each in found
    ]
    resources = [*(state["deployment"].get("resources") or ()), *entered]
    return {**state, "deployment": {**state["deployment"], "resources": resources}}


def _needs(resource: StateResource) -> set[str]:
    """URNs of what has to exist first."""
    provider = provider_urn(resource.get("provider", ""))
    return {*(resource.get("dependencies") or ()), resource.get("parent", ""), provider} - {""}


def shown(value: Any) -> Any:
    """The inputs, or another value of a plan, without what the plan masks or does not know."""
    if isinstance(value, Mapping):
        return {key: shown(each) for key, each in value.items() if each not in (_MASKED, UNKNOWN)}
    if isinstance(value, list):
        return [shown(each) for each in value if each not in (_MASKED, UNKNOWN)]
    return value
