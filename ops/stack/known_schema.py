"""Refuses a state that another version of the project's plugin wrote, before the engine starts."""

from __future__ import annotations

from typing import Final

from identity.state_schema import UnknownSchemaError, require_current
from ops.stack.errors import CommandError
from ops.stack.state import StateResource

_OWN: Final = "idstack:index:"


def of_known_schema(resources: list[StateResource]) -> list[StateResource]:
    """The resources of a state, as they are. Raises CommandError for one in a schema of another version."""
    try:
        for resource in resources:
            if resource["type"].startswith(_OWN):
                require_current(resource.get("inputs", {}))
    except UnknownSchemaError as error:
        raise CommandError(str(error)) from None
    return resources
