"""The shared options of the commands, and their output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.console import Console

from identity.similar import did_you_mean
from ops.commands import completions
from ops.stack import plugins
from ops.stack.chosen_stack import chosen_stack, require_stack
from ops.stack.errors import CommandError
from ops.stack.streaming import Deadline


def bare(names: list[str]) -> list[str]:
    """The names of stacks, which are bare: the organization comes from the login. Raises BadParameter for others."""
    for name in names:
        if "/" in name:
            own = name.rpartition("/")[2]
            raise typer.BadParameter(
                f"{name!r} has an organization or a project in it; accepted: the name of the stack alone, {own!r}. "
                f"`idstack pulumi --stack {own} -- org set-default <organization>` chooses the organization"
            )
    return names


def bare_name(name: str) -> str:
    """The same of one stack."""
    return bare([name])[0]


def _named_stack(context: typer.Context, name: str) -> str:
    """The bare name of the named or chosen stack."""
    if context.resilient_parsing:
        return name
    if not name:
        name, why = chosen_stack()
        if why is not None:
            print(f"stack {name}, chosen by {why}", file=sys.stderr)
    return bare_name(name)


def _checked_stack(context: typer.Context, name: str) -> str:
    """The same, for a stack with a file in the project."""
    stack = _named_stack(context, name)
    if not context.resilient_parsing:
        require_stack(stack)
    return stack


DEFAULT_CHOICE: Final = "PULUMI_STACK, or the selected stack, or local"


def _stack_option(callback: Callable[[typer.Context, str], str]) -> Any:
    return typer.Option(
        *("--stack", "-s"),
        help="Name of the stack.",
        show_default=DEFAULT_CHOICE,
        callback=callback,
        autocompletion=completions.stacks,
    )


StackOption: TypeAlias = Annotated[str, _stack_option(_checked_stack)]
# For a stack that may not have a file yet.
NamedStackOption: TypeAlias = Annotated[str, _stack_option(_named_stack)]
ClusterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        *("--cluster", "-c"), help="Name of one hosted cluster; all by default.", autocompletion=completions.clusters
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
TimeLimitOption: TypeAlias = Annotated[
    Deadline | None,
    typer.Option(
        "--time-limit",
        metavar="MINUTES",
        parser=Deadline.parse,
        help="Interrupt the engine after this time: it completes operations in progress and unlocks the stack.",
    ),
]
ProvidersOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--providers",
        metavar="|".join([plugins.EMULATED, plugins.REAL, "NAME,..."]),
        envvar=plugins.VARIABLE,
        help="Local stacks only: the real provider plugins, fixed at the first run. Default: emulated.",
    ),
]
PoliciesOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--policies",
        help="Local stacks only: run the policies (docs/reference/policies.md), as other stacks always do.",
    ),
]
# The command line names no stack.
DEFAULT_STACK: Final = ""
# Columns of a console without a terminal.
_UNLIMITED_WIDTH: Final = 100_000


def require_cluster(stack: str, cluster: str | None, known: Collection[str]) -> None:
    """Raise CommandError for a hosted cluster that is not among those of the stack; None is all of them."""
    if cluster is not None and cluster not in known:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise CommandError(f"the stack {stack} has no hosted cluster {cluster}; {has}{did_you_mean(cluster, known)}")


@dataclass(frozen=True)
class Screen:
    """The output of a command: with `--json` standard output has only the document, standard error the rest."""

    as_json: bool

    @property
    def output(self) -> int:
        """File descriptor for the standard output of child processes."""
        return sys.stderr.fileno() if self.as_json else sys.stdout.fileno()

    @property
    def console(self) -> Console:
        """The console for text, which is printed as it is; without a terminal a line may have any length."""
        console = Console(stderr=self.as_json, highlight=False, soft_wrap=True, markup=False, emoji=False)
        if not console.is_terminal:
            console.width = _UNLIMITED_WIDTH
        return console

    def step(self, name: str) -> None:
        """Print the name of the step that begins."""
        self.console.print(name, style="bold")

    def document(self, document: Any) -> None:
        """Print the JSON document of `--json`."""
        print(json.dumps(document, indent=2))
