"""Marks what the plugin writes into a state with its schema, and refuses another one."""

from __future__ import annotations

from identity.state_schema import CURRENT, PROPERTY, UnknownSchemaError, require_current
from plugin import PluginError, Props


def marked(properties: Props) -> Props:
    """The properties with the number of their schema."""
    return properties | {PROPERTY: CURRENT}


def require(properties: Props) -> None:
    """Raises `PluginError` for properties of another schema."""
    try:
        require_current(properties)
    except UnknownSchemaError as error:
        raise PluginError(str(error)) from None
