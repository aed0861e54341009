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


@pytest.mark.parametrize("path", MODELS)
def test_a_key_is_described_where_it_is_defined(path: str) -> None:
    assert MODELS[path].get("description"), "give the field a description in identity/settings"


@pytest.mark.parametrize("row", list(references()), ids=lambda row: row.path)
def test_a_row_has_what_is_accepted_a_default_and_a_description(row: Any) -> None:
    assert row.accepted
    assert row.default
    assert re.fullmatch(r"(?s)\S.*\.", row.description), "a description is a sentence"


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


def test_the_default_of_a_key_is_the_models_own() -> None:
    config = yaml.safe_load(PROJECT_FILE.read_text(encoding="utf-8"))["config"]

    given = {key: setting["default"] for key, setting in config.items() if setting["default"] not in ("", [], {})}
    assert given == {
        "cloud": "AzurePublicCloud",
        "protect": True,
        "clusterSide": "stack",
        "roles": "hypershift",
        "keyVaultUserScope": "vault",
        "blockInstanceMetadata": False,
    }
    assert {key: setting["type"] for key, setting in config.items() if setting["type"] != "string"} == {
        "tags": "object",
        **dict.fromkeys(("protect", "blockInstanceMetadata"), "boolean"),
        **dict.fromkeys(("vault", "keyVaultUser", "managementCluster", "credentials", "probe"), "object"),
        **dict.fromkeys(("hostedClusters", "allowCredentialLoss", "policyWaivers"), "array"),
    }


def test_the_page_shows_a_list_that_is_a_default() -> None:
    shown = {row.path: row.default for row in references() if row.default.startswith("`[")}

    assert shown == {
        "managementCluster.create.nodePool.zones": "`[1, 2, 3]`",
        "hostedClusters[].serviceAccountSigningKey.published": "`[1]`",
    }
