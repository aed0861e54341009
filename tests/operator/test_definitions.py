"""What `make e2e` has of the operator's definition of Stack is the operator's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from localcloud.testing.upstream_definitions import schema_of
from tests.harness import PROJECT

_EXCERPT: Final = PROJECT / "tests/apiserver/definitions/stacks.pulumi.com.yaml"
_RULES: Final = "x-kubernetes-validations"


def _definition(file: Path) -> Any:
    documents = yaml.load_all(file.read_bytes(), yaml.CSafeLoader)
    [found] = [each for each in documents if (each or {}).get("metadata", {}).get("name") == "stacks.pulumi.com"]
    return schema_of(found, "v1")


def _differences(excerpt: Any, real: Any, place: str) -> Iterator[str]:
    """Where an excerpt of a schema says what the schema does not; rules are compared whole."""
    for key in sorted({*excerpt, *({_RULES} & real.keys())}):
        if key not in excerpt or key not in real:
            yield f"{place}.{key}: {excerpt.get(key)} is {real.get(key)}"
        elif key == "properties":
            for name, field in excerpt[key].items():
                yield from _differences(field, real[key].get(name, {}), f"{place}.{name}")
        elif key in ("items", "additionalProperties"):
            yield from _differences(excerpt[key], real[key], f"{place}[]")
        elif excerpt[key] != real[key]:
            yield f"{place}.{key}: {excerpt[key]} is {real[key]}"


def test_the_excerpt_of_the_definition_is_the_operators(release: Path) -> None:
    assert list(_differences(_definition(_EXCERPT), _definition(release / "install.yaml"), "stack")) == []
