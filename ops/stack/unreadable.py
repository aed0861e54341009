"""Removes files of the engine that a loss of power may leave empty or truncated, and that it writes again."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Final

import yaml

from identity import yaml_text
from ops.stack.environment import LocalPaths

# pulumi/pulumi `pkg/backend/diy/meta.go`, of a backend of files or blobs
_META: Final = ".pulumi/meta.yaml"
_CORRUPT: Final = re.compile(r"corrupt store: .*meta\.yaml")


def remove(paths: LocalPaths) -> None:
    """Delete broken ones of the local stacks: the records of selected stacks, and the version of the backend's layout.

    The engine writes both atomically (`pkg/workspace/workspace.go`; gocloud.dev/blob/fileblob), so that they are not
    half-written by another command. A broken one fails every command: "unable to read workspace settings", "corrupt
    store".
    """
    notes = (paths.home / "workspaces").glob("*-workspace.json")
    for file, is_whole in (*((note, _is_json) for note in notes), (paths.backend / _META, _is_version)):
        with suppress(FileNotFoundError):  # another command may have deleted it
            if not is_whole(file.read_bytes()):
                file.unlink()


def remedy(errors: str) -> str | None:
    """The remedy if the engine's standard error reports an unreadable version of the backend, else None."""
    if _CORRUPT.search(errors) is None:
        return None
    return f"{_META} of the backend is truncated, as after a loss of power: delete it, and the engine writes it again"


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def _is_version(content: bytes) -> bool:
    try:
        document = yaml_text.load(content)
    except yaml.YAMLError:
        return False
    return isinstance(document, dict) and isinstance(document.get("version"), int)
