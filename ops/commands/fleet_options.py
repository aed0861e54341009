"""The options of the commands of a fleet, and the environments that they choose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ops.fleet.file import DEFAULT_FILE, load_fleet
from ops.fleet.stack_files import require_one_backend
from ops.fleet.stacks import FleetEnvironment
from ops.stack.environment import ROOT
from ops.stack.errors import WrongUsageError

FileOption: TypeAlias = Annotated[Path, typer.Option("--file", "-f", help="The fleet file.", show_default=True)]
EnvironmentOption: TypeAlias = Annotated[
    str | None, typer.Option("--environment", "-e", help="Name of the environment; all of them by default.")
]
DEFAULT = Path(DEFAULT_FILE)


def chosen(file: Path, name: str | None) -> Sequence[FleetEnvironment]:
    """The environment of that name in a fleet file, or all of them in their order.

    Raises WrongUsageError for an unknown name, and as `load_fleet` and `require_one_backend` do.
    """
    fleet = load_fleet(file)
    environments = [environment for environment in fleet if name in (None, environment.name)]
    if not environments:
        known = ", ".join(environment.name for environment in fleet)
        raise WrongUsageError(f"--environment: the fleet has no environment {name}; it has {known}")
    for environment in environments:
        require_one_backend(environment, ROOT)
    return environments
