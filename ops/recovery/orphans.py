"""Computes the orphan candidates of a plan, and states with the orphans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ops.stack.state import UNKNOWN, Plan, State, StateResource, name_of, provider_urn, resources_in, with_resources

# A secret in a plan.
_MASKED: Final = "[secret]"


@dataclass(frozen=True)
class Orphan:
    """A resource of a plan, and the provider's id of the existing one."""

    resource: StateResource
    id: str

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return name_of(self.resource["urn"])


def certificates_since(stack: str) -> str:
    """The message about a state that may be older than a renewal, whose registrations no plan shows."""
    return (
        "certificates that renewals have registered at Entra ID since then stay there; "
        f"`.venv/bin/idstack sweep --stack {stack}` lists them, and deletes them once no pod can use them"
    )


def candidates(plan: Plan, resources: Sequence[StateResource]) -> Iterator[StateResource]:
    """The resources that the plan creates and whose creation may have begun, with the plan's known inputs.

    The engine begins to create a resource once all its dependencies are in the state.
    """
    existing = {resource["urn"] for resource in resources}
    for step in plan["steps"]:
        if step["op"] == "create" and step["newState"]["custom"] and _needs(step["newState"]) <= existing:
            yield {**step["newState"], "inputs": shown(step["newState"].get("inputs", {}))}


def ids(resources: Sequence[StateResource]) -> set[tuple[str, str]]:
    """Type and provider's id of all resources; the id alone is not unique."""
    return {(resource["type"], resource["id"]) for resource in resources if "id" in resource}


def unmarked(state: State) -> State:
    """The `state` without the engine's mark of resources that a replacement deletes first (`pendingReplacement`).

    A refresh does not read marked resources. Without the mark it removes deleted ones, so that a plan creates them
    again and finds an existing replacement; a resource with the same id stays.
    """
    kept = [resource.copy() for resource in resources_in(state)]
    for resource in kept:
        resource.pop("pendingReplacement", None)
    return with_resources(state, kept) if kept else state


def settled(state: State, orphans: Sequence[Orphan]) -> State:
    """The refreshed `state` with the orphans, as the engine would have written them.

    The next command reads the outputs (`refreshBeforeUpdate`); until then the inputs replace them. Secrets are missing
    in the inputs, so that the next `up` writes them again.
    """
    entered: list[StateResource] = [
        {**orphan.resource, "id": orphan.id, "outputs": orphan.resource["inputs"], "refreshBeforeUpdate": True}
        for orphan in orphans
    ]
    return with_resources(state, [*resources_in(state), *entered])


def _needs(resource: StateResource) -> set[str]:
    """The URNs of a resource's dependencies."""
    provider = provider_urn(resource.get("provider", ""))
    return {*(resource.get("dependencies") or ()), resource.get("parent", ""), provider} - {""}


def shown(value: Any) -> Any:
    """The inputs, or another value of a plan, without masked and unknown values."""
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items() if item not in (_MASKED, UNKNOWN)}
    if isinstance(value, list):
        return [shown(item) for item in value if item not in (_MASKED, UNKNOWN)]
    return value
