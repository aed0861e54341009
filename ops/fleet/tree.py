"""The kustomize tree of a fleet: which file has which objects, and how a directory is compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ops.fleet.documents import yaml_text
from ops.fleet.operator_objects import base_objects, drift_objects, identity_objects, stack_objects
from ops.fleet.stacks import Fleet, FleetEnvironment
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError

HEADER: Final = "# Written by `idstack fleet render`; change the fleet file instead.\n"
_CONTAINERFILE: Final = ROOT / "ops/fleet/workspace/Containerfile"


def tree(fleet: Fleet) -> dict[PurePosixPath, str]:
    """Text of every file by its path in the tree; raises CommandError if no environment has an `operator`."""
    rendered = [each for each in fleet.environments if each.operator is not None]
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
        # In this order: a stack's new generation is known before that of a stack that waits for it.
        "sortOptions": {"order": "fifo"},
        "resources": [*bases, *objects],
    }
    documents = {"kustomization.yaml": [kustomization], **objects}
    return {PurePosixPath(path, name): HEADER + yaml_text(each) for name, each in documents.items()}


@dataclass(frozen=True)
class Differences:
    """How a directory differs from the tree: unified diffs, file by file. Empty if it does not."""

    diffs: tuple[str, ...]

    @classmethod
    def between(cls, directory: Path, files: Mapping[PurePosixPath, str]) -> Differences:
        """Compare; a file that render wrote earlier and would not write now is a difference, another's is none."""
        found = []
        for path in sorted({*files, *_written_before(directory)}):
            before, after = _read(directory / path), files.get(path)
            if before != after:
                sides = [
                    ("/dev/null", []) if text is None else (str(path), text.splitlines(keepends=True))
                    for text in (before, after)
                ]
                (old, was), (new, becomes) = sides
                found.append("".join(unified_diff(was, becomes, old, new)))
        return cls(tuple(found))


def write(directory: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Make the directory what the tree is; files of others in it stay. Raises CommandError."""
    try:
        for path in _written_before(directory) - files.keys():
            (directory / path).unlink()
        for path, text in files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"the tree cannot be written: {error}") from None


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
