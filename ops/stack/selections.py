"""The engine's notes of the stack that is selected in each project, in PULUMI_HOME."""

from __future__ import annotations

import json
from pathlib import Path


def forget_unreadable(home: Path) -> None:
    """Remove the notes that are no JSON: the engine does not sync them, so that a loss of power may leave one empty.

    `pulumi stack select` fails at such a one: "unable to read workspace settings" (seen with Pulumi 3.259).
    """
    for note in (home / "workspaces").glob("*-workspace.json"):
        try:
            json.loads(note.read_bytes())
        except ValueError:
            note.unlink(missing_ok=True)
