"""A stack's owner id after its state was lost or destroyed: a person names the former id."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from identity import resource_types
from identity.naming import stack_tag
from identity.plugin_schema import StackOwnerOutputs
from identity.settings.schema.problems import NAMESPACE
from ops.access.clients import deployer
from ops.recovery.settle import create_alone
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.existing import by_reason
from ops.stack.state import StateResource, with_resources
from ops.world.adoption_guard import AdoptionGuard, owner_of_application
from ops.world.stacks import Contents, Stacks


def take(engine: Engine, owner_id: str) -> None:
    """Make an owner id this stack's, so that resources with it belong to the stack again.

    Raises CommandError for an invalid id, and for the id of another stack of the backend.
    """
    try:
        id = str(uuid.UUID(owner_id))
    except ValueError:
        raise CommandError(
            f"--owner: found {owner_id}; accepted: an owner id (a UUID) of a tag idstack-owner"
        ) from None
    stacks = Stacks.read(engine)
    others = stacks.others(engine.stack).items()
    if holder := next((name for name, contents in others if contents.owner == id), None):
        raise CommandError(
            f"--owner: {id} is the owner id of the stack {holder}, which owns the resources "
            "with it; nothing was changed. docs/guides/stacks.md says how a hosted cluster moves to another stack"
        )
    if not any(resource["type"] == resource_types.STACK_OWNER for resource in engine.resources()):
        create_alone(engine, [f"::{resource_types.STACK_OWNER}::*"])
    written: StackOwnerOutputs[str] = {"ownerId": id}
    resources: list[StateResource] = [
        {**resource, "id": id, "outputs": {**(resource.get("outputs") or {}), **written}}
        if resource["type"] == resource_types.STACK_OWNER
        else resource
        for resource in engine.resources()
    ]
    engine.replace_state(with_resources(engine.state(), resources))


def refuse_lost(engine: Engine, report: Callable[[str], None]) -> None:
    """Find applications of another stack with this name; `report` prints them.

    Raises CommandError if the stack has no owner id, and so may have lost its state: an `up` would create them again.
    """
    own = Contents.of(engine.resources_if_any()).owner
    tag = stack_tag(NAMESPACE, engine.stack)
    with deployer(engine) as azure:
        tagged = azure.directory_objects("/applications", f"tags/any(t:startswith(t,'{tag}:'))")
        strangers = [application for application in tagged if owner_of_application(application) not in (None, own)]
        if not strangers:
            return
        guard = AdoptionGuard(azure, Stacks.read(engine), engine.stack)
        listed = by_reason(
            (one["displayName"], str(guard.objection(resource_types.APPLICATION, f"/applications/{one['id']}")))
            for one in strangers
        )
    if own is not None:
        report(f"applications that are left alone:\n{listed}")
        return
    raise CommandError(
        f"the stack {engine.stack} has no owner id yet, and a stack of its name created these applications:\n{listed}\n"
        f"If none of them belongs to this stack, `.venv/bin/idstack up --stack {engine.stack}` creates its own"
    )
