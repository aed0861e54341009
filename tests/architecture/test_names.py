"""The names of identities stand in the catalogue and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from identity.catalogue import CONTROL_PLANE
from tests.architecture.source import ROOT, constants, files, nodes, place

ROOMS: Final = ("identity", "plugin", "components", "provider", "ops", "__main__")
CATALOGUE: Final = ROOT / "identity/catalogue.py"
SECRET_PROVIDER_CLASSES: Final = tuple(row.secret_provider_class for row in CONTROL_PLANE)
# `ingress`, `network`, `disk`, `file` and `kms` are words of their own, too: they are looked for in comparisons only.
FIELDS: Final = tuple(row.field for row in CONTROL_PLANE if not row.field.islower())


def other_files() -> Iterator[Path]:
    return (file for room in ROOMS for file in files(room) if file != CATALOGUE)


@pytest.mark.parametrize("name", SECRET_PROVIDER_CLASSES)
def test_a_secret_provider_class_is_named_in_the_catalogue_alone(name: str) -> None:
    assert f'"{name}"' in CATALOGUE.read_text(encoding="utf-8")
    assert not [str(file) for file in other_files() if name in file.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", FIELDS)
def test_an_identitys_field_is_named_in_the_catalogue_alone(name: str) -> None:
    assert f'"{name}"' in CATALOGUE.read_text(encoding="utf-8")
    assert not [place(file, node.lineno) for file, node in constants(ROOMS) if node.value == name and file != CATALOGUE]


def test_no_decision_depends_on_which_identity_it_is() -> None:
    """`row.field == "kms"` would be a column of the catalogue that is missing."""
    assert not [
        place(file, node.lineno)
        for file in other_files()
        for node in nodes(file)
        if (isinstance(node, ast.Match) and _is_name(node.subject))
        or (isinstance(node, ast.Compare) and _compares_a_name(node))
    ]


def _compares_a_name(comparison: ast.Compare) -> bool:
    sides = [comparison.left, *comparison.comparators]
    return any(map(_is_name, sides)) and any(map(_is_literal, sides))


def _is_literal(expression: ast.expr) -> bool:
    if isinstance(expression, ast.Tuple | ast.List | ast.Set):
        return any(map(_is_literal, expression.elts))
    return isinstance(expression, ast.Constant) and isinstance(expression.value, str)


def _is_name(expression: ast.expr) -> bool:
    """Whether it is one of the catalogue's columns that name an identity."""
    columns = {"field", "component", "secret_provider_class", "secret_stem"}
    return isinstance(expression, ast.Attribute) and expression.attr in columns
