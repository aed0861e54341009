"""The local cloud's record for the program of an earlier commit, which refuses unknown members."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Final

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE
from ops.rehearsal.trees import Tree
from ops.stack.environment import local_paths
from ops.stack.errors import CommandError

_MEMBERS: Final = (
    "import dataclasses, json; from identity.clouds import LocalEnvironment; "
    "print(json.dumps([field.name for field in dataclasses.fields(LocalEnvironment)]))"
)
_EXEC: Final = "\nexec "


def variables_for(tree: Tree, into: Path) -> dict[str, str]:
    """Variables that name a record without the members that a commit does not know; empty if it knows all of them.

    `into` is the record to write. The emulated plugins are the checkout's: their scripts name the whole record. Raises
    CommandError for a commit without a local cloud.
    """
    record = local_paths().record
    whole = json.loads(record.read_text(encoding="utf-8"))
    known = {"".join([first, *(word.capitalize() for word in rest)]) for first, *rest in _known(tree)}
    if whole.keys() <= known:
        return {}
    into.write_text(json.dumps({key: value for key, value in whole.items() if key in known}), encoding="utf-8")
    for script in local_paths().plugins.glob("resource-*/pulumi-resource-*"):
        text = script.read_text(encoding="utf-8")
        named = f"{_EXEC}env {LOCAL_ENVIRONMENT_VARIABLE}={shlex.quote(str(record))} "
        script.write_text(text.replace(_EXEC, named, 1), encoding="utf-8")
    return {LOCAL_ENVIRONMENT_VARIABLE: str(into)}


def _known(tree: Tree) -> list[list[str]]:
    """The members of the record at the commit, each as its words."""
    done = subprocess.run(
        [str(tree.directory / ".venv/bin/python"), "-c", _MEMBERS],
        cwd=tree.directory,
        env={"PYTHONPATH": str(tree.directory)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CommandError(f"the program of {tree.name} cannot run on the local cloud of this checkout")
    return [name.split("_") for name in json.loads(done.stdout)]
