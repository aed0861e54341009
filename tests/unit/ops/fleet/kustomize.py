"""A kustomize tree as its objects, for the few fields that the rendered tree uses: resources, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

import yaml

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


def identity(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name."""
    return manifest["kind"], manifest["metadata"]["name"]
