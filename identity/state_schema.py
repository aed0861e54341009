"""The schema version of the resources that the project's own plugin writes into a stack's state.

1: version 0.1.0. `CONTRIBUTING.md` says what belongs to the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PROPERTY: Final = "schema"
CURRENT: Final = 1


class UnknownSchemaError(Exception):
    """Properties in another schema than this version's, and how to fix it."""


def require_current(properties: Mapping[str, Any]) -> None:
    """Raises UnknownSchemaError for properties that another version of the plugin wrote."""
    schema = properties.get(PROPERTY, "(none)")
    if schema != CURRENT:
        raise UnknownSchemaError(
            f"the state has the schema {schema} of this plugin; this version reads {CURRENT}: use the version that "
            "brought the stack up last, or a later one"
        )
