"""Fleet files for the tests: one of the local cloud, and one of Azure with two environments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, Final

import yaml

from identity.settings.schema.problems import path_of
from ops.fleet.file import fleet_of
from ops.fleet.reading import FleetFileError
from ops.fleet.stacks import FleetEnvironment

FILES: Final = Path(__file__).parent / "files"
LOCAL: Final = FILES / "local.yaml"
AZURE: Final = FILES / "azure.yaml"


def document(file: Path = AZURE) -> dict[str, Any]:
    """A fleet file, to be changed."""
    # Through JSON, so that what YAML's aliases share is changed in one place alone.
    found: dict[str, Any] = json.loads(json.dumps(yaml.safe_load(file.read_text(encoding="utf-8"))))
    return found


def fleet(changed: dict[str, Any]) -> tuple[FleetEnvironment, ...]:
    """The environments of a document."""
    return fleet_of(yaml.safe_dump(changed, sort_keys=False))


def refusals(changed: dict[str, Any] | str) -> list[tuple[str, str]]:
    """Place and rule of every problem of a document, or of a text."""
    text = changed if isinstance(changed, str) else yaml.safe_dump(changed, sort_keys=False)
    try:
        fleet_of(text)
    except FleetFileError as error:
        return [(path_of(problem.place) if problem.place else "", problem.rule) for problem in error.problems]
    return []


_KNOWN = {"apiVersion", "kind", "sortOptions", "resources"}


def build(files: Mapping[PurePosixPath, str], directory: str) -> list[dict[str, Any]]:
    """What `kubectl kustomize <directory>` prints."""
    [kustomization] = yaml.safe_load_all(files[PurePosixPath(directory, "kustomization.yaml")])
    assert kustomization.keys() <= _KNOWN, "teach `build` what this does"
    found: list[dict[str, Any]] = []
    for resource in kustomization["resources"]:
        path = PurePosixPath(normpath(f"{directory}/{resource}"))
        found += list(yaml.safe_load_all(files[path])) if path in files else build(files, str(path))
    return found
