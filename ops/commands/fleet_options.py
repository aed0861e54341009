"""The options of the commands of a fleet, and the environments that they choose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ops.fleet.file import DEFAULT_FILE
from ops.fleet.stacks import Fleet, FleetEnvironment
from ops.stack.errors import CommandError

FileOption: TypeAlias = Annotated[Path, typer.Option("--file", "-f", help="The fleet file.", show_default=True)]
EnvironmentOption: TypeAlias = Annotated[
    str | None, typer.Option("--environment", "-e", help="Name of the environment; all of them by default.")
]
DEFAULT = Path(DEFAULT_FILE)


def chosen(fleet: Fleet, name: str | None) -> Sequence[FleetEnvironment]:
    """The environment of that name, or all of them in their order; raises CommandError for an unknown name."""
    if name is None:
        return fleet.environments
    environments = [environment for environment in fleet.environments if environment.name == name]
    if not environments:
        known = ", ".join(environment.name for environment in fleet.environments)
        raise CommandError(f"--environment: the fleet has no environment {name}; it has {known}")
    return environments
