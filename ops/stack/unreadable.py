"""Small files of the engine that a loss of power may leave empty or cut short, and that it writes anew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import yaml

from ops.stack.environment import LocalPaths

# pulumi/pulumi `pkg/backend/diy/meta.go`, of a backend of files or blobs
_META: Final = ".pulumi/meta.yaml"
_CORRUPT: Final = re.compile(r"corrupt store: .*meta\.yaml")


def remove(paths: LocalPaths) -> None:
    """Delete those of the local stacks' engine: the notes of selected stacks, and the version of the backend's layout.

    The engine writes both in one step (`pkg/workspace/workspace.go`; gocloud.dev/blob/fileblob), so that none of
    another command is half there. A broken one fails every command: "unable to read workspace settings",
    "corrupt store".
    """
    for note in (paths.home / "workspaces").glob("*-workspace.json"):
        try:
            json.loads(note.read_bytes())
        except ValueError:
            note.unlink(missing_ok=True)
    version = paths.backend / _META
    if version.exists() and not _is_version(version):
        version.unlink(missing_ok=True)


def remedy(errors: str) -> str | None:
    """What to do about a backend whose version the engine cannot read, as its standard error says; else None."""
    if _CORRUPT.search(errors) is None:
        return None
    return f"{_META} of the backend is cut short, as after a loss of power: delete it, the engine writes it anew"


def _is_version(file: Path) -> bool:
    try:
        found = yaml.safe_load(file.read_bytes())
    except yaml.YAMLError:
        return False
    return isinstance(found, dict) and isinstance(found.get("version"), int)
