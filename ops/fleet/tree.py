"""The kustomize tree of a fleet: its files, and how a directory differs from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path, PurePosixPath
from typing import Any, Final

from identity.yaml_text import dump
from ops.fleet.operator_objects import base_objects, drift_objects, identity_objects, stack_objects
from ops.fleet.stacks import FleetEnvironment
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError, writing

HEADER: Final = "# Written by `idstack fleet render`; change the fleet file instead.\n"
_CONTAINERFILE: Final = ROOT / "ops/fleet/workspace/Containerfile"


def tree(fleet: Sequence[FleetEnvironment]) -> dict[PurePosixPath, str]:
    """Text of every file by its path in the tree; raises CommandError if no environment has an `operator`."""
    rendered = [environment for environment in fleet if environment.operator is not None]
    if not rendered:
        raise CommandError(
            "no environment of the fleet file has `operator`, which names the workspaces' image and identity "
            "(docs/guides/fleet.md)"
        )
    files = {
        PurePosixPath("workspace/Containerfile"): HEADER + _CONTAINERFILE.read_text(encoding="utf-8"),
        **_directory("base", {"fleet.yaml": list(base_objects())}),
    }
    for environment in rendered:
        files |= _environment(environment)
    return files


def _environment(environment: FleetEnvironment) -> dict[PurePosixPath, str]:
    operator = environment.operator
    assert operator is not None, "only environments with an operator are rendered"
    objects = {
        "identity.yaml": list(identity_objects(environment, operator)),
        "stacks.yaml": list(stack_objects(environment, operator)),
        **({"drift.yaml": list(drift_objects(environment, operator))} if operator.drift else {}),
    }
    return _directory(f"environments/{environment.name}", objects, bases=["../../base"])


def _directory(
    path: str, objects: Mapping[str, Sequence[Mapping[str, Any]]], bases: Sequence[str] = ()
) -> dict[PurePosixPath, str]:
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        # In this order: the operator knows a stack's new generation before that of a stack that waits for it.
        "sortOptions": {"order": "fifo"},
        "resources": [*bases, *objects],
    }
    documents = {"kustomization.yaml": [kustomization], **objects}
    return {PurePosixPath(path, name): HEADER + dump(*items) for name, items in documents.items()}


def differences(directory: Path, files: Mapping[PurePosixPath, str]) -> list[str]:
    """How a directory differs from the tree: a unified diff for each file. Ignores files that render never wrote."""
    diffs = []
    for path in sorted({*files, *_written_before(directory)}):
        before, after = _read(directory / path), files.get(path)
        if before != after:
            (old, old_lines), (new, new_lines) = (
                ("/dev/null", []) if text is None else (str(path), text.splitlines(keepends=True))
                for text in (before, after)
            )
            diffs.append("".join(unified_diff(old_lines, new_lines, old, new)))
    return diffs


def write(directory: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Write the tree into the directory; files that render never wrote stay. Raises CommandError."""
    with writing("the tree"):
        for path in _written_before(directory) - files.keys():
            (directory / path).unlink()
        for path, text in files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


def _written_before(directory: Path) -> set[PurePosixPath]:
    """Paths of the files that render has written."""
    return {
        PurePosixPath(path.relative_to(directory).as_posix())
        for top in ("base", "environments", "workspace")
        for path in (directory / top).rglob("*")
        if path.is_file() and (_read(path) or "").startswith(HEADER)
    }


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None
