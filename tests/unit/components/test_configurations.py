"""The configurations have every choice that Azure's resources depend on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from identity.settings.schema.model import Settings
from identity.settings.schema.schema_node import SchemaNode
from tests.unit.components import world
from tests.unit.components.configurations import AZURE, CONFIGURATIONS

# Keys that Azure's resources alone depend on, with what is below them.
_OF_AZURE: Final = ("vault", "keyVaultUser", "keyVaultUserScope", "managementCluster.create", "roles")
Choice = tuple[str, Any]


def _choices(node: SchemaNode, path: str) -> Iterator[Choice]:
    """Each key, with None, or with each of its words or booleans."""
    if node.model is None:
        yield from ((path, value) for value in node.choices or ((True, False) if node.annotation is bool else (None,)))
        return
    for field in node.model.model_fields.values():
        yield from _choices(
            SchemaNode.of(field.annotation, field.metadata), f"{path}.{field.alias}" if path else str(field.alias)
        )


def _values(configuration: Any, path: str) -> Iterator[Any]:
    key, _, below = path.partition(".")
    if isinstance(configuration, dict) and key in configuration:
        yield from _values(configuration[key], below) if below else (configuration[key],)


def _is_of_azure(path: str) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}.") for prefix in _OF_AZURE)


@pytest.mark.parametrize(
    "choice",
    [choice for choice in _choices(SchemaNode(Settings), "") if _is_of_azure(choice[0])],
    ids=lambda choice: f"{choice[0]}-{choice[1]}",
)
def test_a_configuration_has_each_choice(choice: Choice) -> None:
    path, value = choice
    defaults = {"roles": "hypershift"}
    given = [
        found
        for changes in (*CONFIGURATIONS.values(), *AZURE.values())
        for found in _values({**defaults, **changes}, path)
    ]

    assert value in given if value is not None else given


def test_every_configuration_is_valid() -> None:
    for changes in (*CONFIGURATIONS.values(), *AZURE.values()):
        world.settings(**changes)
