"""A stack's owner id after its state was lost, or after it was destroyed: a person says which one it had."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Set

from identity import resource_types
from identity.clouds import LocalEnvironment
from identity.naming import stack_tag
from identity.plugin_schema import StackOwnerOutputs
from identity.settings.schema.problems import NAMESPACE
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import Plan, StateResource, provider_urn, type_of
from ops.world.stacks import Contents, Stacks
from ops.world.whose import Whose, owner_of_application, signed_in


def take(engine: Engine, owner_id: str) -> None:
    """Make an owner id this stack's, so that what carries it is the stack's again; the next `up` writes it everywhere.

    Raises CommandError for a text that is none, and for the id of another stack of the backend.
    """
    try:
        wanted = str(uuid.UUID(owner_id))
    except ValueError:
        raise CommandError(
            f"--owner: found {owner_id}; accepted: an owner id (a UUID), as the tag idstack-owner has it"
        ) from None
    stacks = Stacks.read(engine)
    others = stacks.besides(engine.stack).items()
    if holder := next((name for name, contents in others if contents.owner == wanted), None):
        raise CommandError(
            f"--owner: {wanted} is the owner id of the stack {holder}, and what carries it is that "
            "stack's; nothing was changed. `idstack split` moves a hosted cluster from one stack to another"
        )
    state = engine.state()
    resources = list(state["deployment"].get("resources") or ())
    if not any(each["type"] == resource_types.STACK_OWNER for each in resources):
        resources += _planned(engine.planned(), {each["urn"] for each in resources})
    resources = [_with(each, wanted) for each in resources]
    engine.replace_state({**state, "deployment": {**state["deployment"], "resources": resources}})


def refuse_lost(engine: Engine, local: LocalEnvironment | None, report: Callable[[str], None]) -> None:
    """Look for applications of a stack with this name that are not this one's; `report` prints a line for each.

    Raises CommandError if the stack has no owner id yet, and so may have lost its state: an `up` would make them all
    once more.
    """
    own = Contents.of(engine.resources()).owner
    tag = stack_tag(NAMESPACE, engine.stack)
    with signed_in(engine, local) as azure:
        tagged = azure.directory_objects("/applications", f"tags/any(t:startswith(t,'{tag}:'))")
        strangers = [each for each in tagged if owner_of_application(each) not in (None, own)]
        if not strangers:
            return
        whose = Whose(azure, Stacks.read(engine), engine.stack)
        objections = {
            each["id"]: whose.objection(resource_types.APPLICATION, f"/applications/{each['id']}") for each in strangers
        }
    lines = [f"{each['displayName']}: {objections[each['id']]}" for each in strangers]
    if own is not None:
        for line in lines:
            report(f"left alone: the application {line}")
        return
    listed = "\n".join(f"  {line}" for line in lines)
    raise CommandError(
        f"the stack {engine.stack} has no owner id yet, and a stack of its name made these applications:\n{listed}\n"
        f"If none of them is this stack's, `make up STACK={engine.stack}` makes it applications of its own"
    )


def _planned(plan: Plan, there: Set[str]) -> Iterator[StateResource]:
    """The owner of a plan, as the engine would write it, after the stack and the provider if they are not `there`."""
    new = {each["urn"]: each["newState"] for each in plan["steps"] if each["op"] == "create"}
    owner = next(each for each in new.values() if each["type"] == resource_types.STACK_OWNER)
    if owner["parent"] not in there:
        yield new[owner["parent"]]
    urn = provider_urn(owner["provider"])
    if urn in there:
        yield owner
        return
    # A plan does not show a default provider, which has no inputs.
    id = str(uuid.uuid4())
    yield {"urn": urn, "type": type_of(urn), "custom": True, "id": id, "inputs": {}, "outputs": {}}
    yield {**owner, "provider": f"{urn}::{id}"}


def _with(resource: StateResource, owner_id: str) -> StateResource:
    if resource["type"] != resource_types.STACK_OWNER:
        return resource
    written: StackOwnerOutputs[str] = {"ownerId": owner_id}
    return {**resource, "id": owner_id, "outputs": {**(resource.get("outputs") or {}), **written}}
