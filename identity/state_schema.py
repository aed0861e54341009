"""The number of the schema in which the project's own plugin writes its resources into a stack's state.

1, unwritten: two certificates from the start, private keys in the state, the secret as azure-native's resource.
2: no private key; the schedule follows the vault; the secret is the plugin's own (`ops/stack/migration.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PROPERTY: Final = "schema"
CURRENT: Final = 2
FIRST: Final = 1


class UnknownSchema(Exception):
    """Properties in another schema than this release's, and what to do about it."""


def schema_of(properties: Mapping[str, Any]) -> int:
    """The schema of a resource's properties in a state."""
    found = properties.get(PROPERTY, FIRST)
    return found if isinstance(found, int) else 0


def require_current(properties: Mapping[str, Any]) -> None:
    """Raises UnknownSchema for properties of an earlier, a later or no release."""
    found = schema_of(properties)
    if found == CURRENT:
        return
    if found == FIRST:
        fix = "run `make up`, which brings the state up to date before it starts the engine"
    else:
        fix = "use the release that brought the stack up last, or a later one"
    raise UnknownSchema(f"the state has the schema {found} of this plugin; this release reads {CURRENT}: {fix}")
