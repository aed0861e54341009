"""The command line: one table of the commands, each of which is imported when it runs.

`idstack --help` and completion show the table alone: all commands together take seconds to import.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from identity.version import read_version

if TYPE_CHECKING:
    from ops.commands.options import Screen
    from ops.stack.engine import Engine

# Unknown options are passed on to the engine, or to the wrapped command.
_PASS_ON: Final = {"context_settings": {"allow_extra_args": True, "ignore_unknown_options": True}}
# So is `--help`.
_PASS_ALL_ON: Final = {
    "context_settings": {**_PASS_ON["context_settings"], "help_option_names": []},
    "add_help_option": False,
}


@dataclass(frozen=True)
class CommandRow:
    """A command: the function `name` of the module `ops.commands.<name>`, or a `typer.Typer` of that name.

    Attributes:
        panel: heading in `idstack --help`.
        summary: its line there, which fits 80 columns. The function's docstring is its own `--help`.
        settings: how typer parses its arguments.
    """

    name: str
    panel: str
    summary: str
    settings: Mapping[str, Any]

    def load(self) -> TyperCommand | TyperGroup:
        python_name = f"{self.name}_" if self.name == "import" else self.name
        loaded = getattr(import_module(f"ops.commands.{python_name}"), python_name)
        if not isinstance(loaded, typer.Typer):
            function, loaded = loaded, typer.Typer(add_completion=False)
            loaded.command(self.name, **self.settings)(function)
        command = get_command(loaded)
        assert isinstance(command, TyperCommand | TyperGroup)
        _fold(command)
        return command


def _rows(panel: str, *rows: tuple[str, str] | tuple[str, str, Mapping[str, Any]]) -> dict[str, CommandRow]:
    return {name: CommandRow(name, panel, summary, dict(*settings)) for name, summary, *settings in rows}


COMMANDS: Final[Mapping[str, CommandRow]] = {
    **_rows(
        "Deploy",
        ("init", "Write the configuration of a new stack, and create the stack."),
        ("up", "Deploy a stack; a local one ends with a table of its sign-ins.", _PASS_ON),
        ("preview", "Show what `up` would change.", _PASS_ON),
        ("down", "Destroy a stack.", _PASS_ON),
        ("rehearse", "Rehearse a change on a local cloud, while clients sign in."),
        ("import", "Adopt existing resources, also those of HyperShift's scripts."),
        ("export", "Write files for other tools, such as HyperShift's CLI."),
        ("fleet", "Run many stacks from one file."),
    ),
    **_rows(
        "Inspect",
        ("status", "Show each identity: secret, expiry, renewal, sign-in."),
        ("doctor", "Find the first broken stage of each identity, and its fix."),
        ("explain", "Explain an error code, a reason or a condition, and its fix."),
        ("graph", "Draw the chain of each identity as a page or a picture."),
    ),
    **_rows(
        "Credentials",
        ("renew", "Renew the certificates that are due, without other changes.", _PASS_ON),
        ("rotate", "Renew certificates now, also after a leak.", _PASS_ON),
        ("probe", "Prove one mounted credential.", _PASS_ALL_ON),
    ),
    **_rows(
        "Access",
        ("kubeconfig", "Write a kubeconfig with the sign-in to the cluster."),
        ("token", "Sign in to an AKS API server."),
        ("rbac", "Print the rights that a deployer needs."),
    ),
    **_rows(
        "Recovery",
        ("recover", "Settle the interrupted operations of a killed run.", _PASS_ON),
        ("backup", "Write a stack's state and configuration to a file."),
        ("restore", "Restore a stack's state from a backup."),
        ("sweep", "List leftover resources in Azure, and delete them on request."),
    ),
    **_rows(
        "Local",
        ("pulumi", "Run the engine's CLI for a stack.", _PASS_ON),
        ("local", "Run a command of the local cloud.", _PASS_ALL_ON),
    ),
}


class _Commands(TyperGroup):
    """`idstack`: each command is a name with a summary until it runs."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for row in COMMANDS.values():
            self.add_command(TyperCommand(row.name, help=row.summary, rich_help_panel=row.panel))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, COMMANDS[name].load() if name else None, rest


class _Inspector:
    """`ops.commands.options.Inspector`, which imports a command when it is asked."""

    def show_status(self, engine: Engine, screen: Screen) -> None:
        from ops.commands.status import show

        show(engine, screen)

    def ended_credentials(self, engine: Engine, clusters: Collection[str]) -> str | None:
        from ops.doctor.examination import ended_credentials

        return ended_credentials(engine, clusters)


def application() -> typer.Typer:
    cli = typer.Typer(
        name="idstack",
        cls=_Commands,
        help="Azure identities of HostedClusters: deploy a stack, check its credentials, destroy it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "obj": _Inspector()},
    )
    cli.callback()(_options)
    return cli


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"idstack {read_version()}")
        raise typer.Exit


def _options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, help="Print the version.")] = False,
) -> None:
    """The options without a command."""


def _fold(command: TyperCommand | TyperGroup) -> None:
    """Join the lines of each paragraph of the help; the screen breaks them."""
    if command.help:
        command.help = _LINE_BREAK.sub(" ", command.help)
    for subcommand in command.commands.values() if isinstance(command, TyperGroup) else ():
        assert isinstance(subcommand, TyperCommand | TyperGroup)
        _fold(subcommand)


# Line breaks inside of a paragraph, except before indented lines and items of lists.
_LINE_BREAK: Final = re.compile(r"(?<=\S)\n(?=[^\s*-])")
