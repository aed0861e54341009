"""`idstack fleet matrix`: the waves of an environment for a workflow of GitHub."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ops.commands.fleet_options import DEFAULT, FileOption, chosen
from ops.fleet.file import load_fleet
from ops.fleet.matrix import matrices


def matrix(
    environment: Annotated[str, typer.Option("--environment", "-e", help="Name of the environment.")],
    file: FileOption = DEFAULT,
) -> None:
    """Print the matrix of each wave, a line `<job>=<JSON>` for each job, as a step writes its outputs.

    For a job without stacks nothing is behind the `=`, so that the workflow skips it.
    """
    [one] = chosen(load_fleet(file), environment)
    for job, found in matrices(one).items():
        print(f"{job}={json.dumps(found) if found else ''}")
