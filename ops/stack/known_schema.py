"""Refuses a state that another version of the project's plugin wrote, before the engine starts."""

from __future__ import annotations

from identity import resource_types
from identity.state_schema import UnknownSchemaError, require_current
from ops.stack.errors import CommandError
from ops.stack.state import StateResource


def of_known_schema(resources: list[StateResource]) -> list[StateResource]:
    """The resources of a state, as they are. Raises CommandError for one in a schema of another version."""
    try:
        for resource in resources:
            if resource["type"].startswith(resource_types.OWN):
                require_current(resource.get("inputs", {}))
    except UnknownSchemaError as error:
        raise CommandError(str(error)) from None
    return resources
