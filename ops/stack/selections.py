"""The engine's notes of the stack that is selected in each project, in PULUMI_HOME."""

from __future__ import annotations

import json
from pathlib import Path


def forget_unreadable(home: Path) -> None:
    """Remove the notes that are no JSON, as a disk may leave one that has lost its power.

    The engine writes them in one step and syncs them (pulumi/pulumi `pkg/workspace/workspace.go`), so that none of
    another command is half there. `pulumi stack select` fails at a broken one: "unable to read workspace settings".
    """
    for note in (home / "workspaces").glob("*-workspace.json"):
        try:
            json.loads(note.read_bytes())
        except ValueError:
            note.unlink(missing_ok=True)
