"""`idstack`, the command line of this project.

Only the module of the command that runs is imported. Clients of Kubernetes start `idstack token` for each sign-in, and
all commands together take more than twice as long to import.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from identity.version import read_version
from ops.stack.errors import CommandError

# Other options than the command's own go to the engine, or to the command behind it.
_PASS_ON: Final = {"context_settings": {"allow_extra_args": True, "ignore_unknown_options": True}}
# So does `--help`.
_PASS_ALL_ON: Final = {
    "context_settings": {**_PASS_ON["context_settings"], "help_option_names": []},
    "add_help_option": False,
}


@dataclass(frozen=True)
class _Command:
    """A function `name` of the module `ops.commands.<name>`, and how typer is to parse its arguments."""

    name: str
    settings: Mapping[str, Any]

    def add_to(self, cli: typer.Typer) -> None:
        """Import the command and register it."""
        found = getattr(import_module(f"ops.commands.{self.name}"), self.name)
        if isinstance(found, typer.Typer):
            cli.add_typer(found)
        else:
            cli.command(self.name.removesuffix("_"), **self.settings)(found)


_COMMANDS: Final = {
    name.removesuffix("_"): _Command(name, settings)
    for name, settings in (
        ("init", {}),
        ("up", _PASS_ON),
        ("preview", _PASS_ON),
        ("down", _PASS_ON),
        ("recover", _PASS_ON),
        ("renew", _PASS_ON),
        ("rotate", _PASS_ON),
        ("probe", _PASS_ON),
        ("import_", _PASS_ON),
        ("status", {}),
        ("graph", {}),
        ("backup", {}),
        ("restore", {}),
        ("split", {}),
        ("token", {}),
        ("export", {}),
        ("kubeconfig", {}),
        ("rbac", {}),
        ("doctor", {}),
        ("rehearse", {}),
        ("forecast", {}),
        ("sweep", {}),
        ("fleet", {}),
        ("pulumi", _PASS_ON),
        ("local", _PASS_ALL_ON),
    )
}


def application(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """`idstack` with these commands alone, all by default; raises KeyError for an unknown name."""
    cli = typer.Typer(
        name="idstack",
        help="Azure identities of managed HostedClusters: bring a stack up, check its credentials, take it down.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    # With a callback typer keeps the name of an only command.
    cli.callback()(_options)
    for name in names:
        _COMMANDS[name].add_to(cli)
    return cli


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"idstack {read_version()}")
        raise typer.Exit


def _options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, help="Print the version.")] = False,
) -> None:
    """The options without a command."""


def main() -> None:
    """Run a command; what a person has to fix is printed as one paragraph, exit code 1 (2 for wrong usage)."""
    # What a library logs about a failure stands in the command's own paragraph.
    logging.getLogger().addHandler(logging.NullHandler())
    first = sys.argv[1:2]
    try:
        application(first if _COMMANDS.keys() & first else _COMMANDS)(prog_name="idstack")
    except CommandError as error:
        print(f"idstack: {error.format_message()}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
