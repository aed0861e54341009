"""The written reference of the configuration has every key of the models, down to the nested ones, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from identity.settings import Settings
from tools.docs.configuration import PAGE, PROJECT_FILE, page, project_file, references

WHOLE = Settings.model_json_schema()


def keys(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every key below a place of pydantic's own JSON schema, with its schema."""
    if "$ref" in schema:
        yield from keys(WHOLE["$defs"][schema["$ref"].rpartition("/")[2]], path)
    for variant in schema.get("anyOf", ()):
        yield from keys(variant, path)
    if "items" in schema:
        yield from keys(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from keys(schema["additionalProperties"], f"{path}.<field>")
    for name, value in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        yield below, value
        if below != "cloud":  # a name in the stack file, an object of the program's own behind it
            yield from keys(value, below)


MODELS = dict(keys(WHOLE))


def test_every_key_of_the_models_is_in_the_reference_once() -> None:
    assert sorted(row.path for row in references()) == sorted(MODELS)


def test_a_row_has_what_is_accepted_a_default_and_a_description() -> None:
    assert not [path for path, schema in MODELS.items() if not schema.get("description")], "in identity/settings"
    assert not [row.path for row in references() if not (row.accepted and row.default)]
    assert not [row.path for row in references() if not re.fullmatch(r"(?s)\S.*\.", row.description)], "a sentence"


def test_page_and_schema_of_the_project_are_what_the_models_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make generate`"
    written = PROJECT_FILE.read_text(encoding="utf-8")
    assert written == project_file(written), "run `make generate`"
    with pytest.raises(ValueError, match='no line "config:"'):
        project_file("name: idstack\n")


def test_the_schema_of_the_project_names_the_nested_keys() -> None:
    config = yaml.safe_load(PROJECT_FILE.read_text(encoding="utf-8"))["config"]

    for path in MODELS:
        top, *nested = re.split(r"[.\[]", path)
        if nested:
            assert re.search(rf"\b{nested[-1]}\b", config[top]["description"]), path
