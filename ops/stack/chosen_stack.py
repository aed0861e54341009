"""The stack of a command: `--stack`, PULUMI_STACK, the stack of `pulumi stack select`, or the local stack."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from identity.similar import did_you_mean
from ops.stack.environment import LOCAL_STACK, ROOT, is_local, project_name, pulumi_home
from ops.stack.errors import CommandError, message
from ops.stack.stack_document import BACKEND_VARIABLE, recorded, write_once

_FILE: Final = "Pulumi.{}.yaml"
_SAMPLES: Final = "examples/stacks"


def chosen_stack(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> tuple[str, str | None]:
    """The bare name of the stack for a command without `--stack`, and what has chosen it; None for the default.

    Raises CommandError if different stacks are selected in several backends.
    """
    if named := environ.get("PULUMI_STACK"):
        return named.rpartition("/")[2], "PULUMI_STACK"
    if selected := _selected(environ, root):
        return selected, "pulumi stack select"
    return LOCAL_STACK, None


def require_stack(stack: str, root: Path = ROOT) -> None:
    """Raise CommandError for a stack without a file, with the stacks that have one, and for a file that is not YAML.

    A sample is copied into the project first, for every command, the program and `pulumi` read the file there.
    """
    file = file_of(stack, root)
    if not file.exists():
        raise no_such_stack(stack, root)
    if file.parent != root:
        write_once(root / file.name, file.read_text(encoding="utf-8"))
    recorded(stack, root)


def file_of(stack: str, root: Path) -> Path:
    """The stack's file in a project, or the sample that it has not copied yet."""
    file = root / _FILE.format(stack)
    sample = root / _SAMPLES / file.name
    return sample if sample.exists() and not file.exists() else file


def no_such_stack(stack: str, root: Path) -> CommandError:
    known = stack_names(root)
    hint = "docs/guides/stacks.md has an example of a local one"
    if not is_local(stack):
        hint = f"`.venv/bin/idstack init {stack}` creates one"
    absent = f"{_FILE.format(stack)}{did_you_mean(stack, known) or '.'}"
    names = ", ".join(known) or "none"
    return CommandError(message("chosen_stack.no-file", stack=stack, absent=absent, names=names, hint=hint))


def stack_names(root: Path = ROOT) -> list[str]:
    """The stacks that have a file in the project, and its samples, in alphabetical order."""
    files = {file.name for folder in (root, root / _SAMPLES) for file in folder.glob("Pulumi.*.yaml")}
    return sorted(name.removeprefix("Pulumi.").removesuffix(".yaml") for name in files)


def _selected(environ: Mapping[str, str], root: Path) -> str | None:
    """The selected stack, by its bare name (pulumi/pulumi v3.259 `sdk/go/common/workspace/workspace.go`).

    The engine records one for each backend, in PULUMI_HOME, by the path of the project's file.
    """
    home = pulumi_home(environ)
    project = root / "Pulumi.yaml"
    keys = {
        hashlib.sha1(str(path).encode(), usedforsecurity=False).hexdigest() for path in (project, project.resolve())
    }
    name = project_name(root)
    notes = [home / "workspaces" / f"{name}-{key}-workspace.json" for key in sorted(keys)]
    documents = [document for note in notes if (document := _json(note)) is not None]
    by_backend = {url: stack for document in documents for url, stack in (document.get("stacks") or {}).items()}
    current = environ.get(BACKEND_VARIABLE) or (_json(home / "credentials.json") or {}).get("current")
    if current in by_backend:
        return str(by_backend[current]).rpartition("/")[2]
    names = {str(document).rpartition("/")[2] for document in by_backend.values()}
    if len(names) > 1:
        raise CommandError(message("chosen_stack.ambiguous", names=", ".join(sorted(names))))
    return next(iter(names), None)


def _json(file: Path) -> dict[str, Any] | None:
    """The document in one of the engine's files; None for a missing or broken one."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
