"""The shared options of the commands, and their output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeAlias, cast

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from identity.aks.login import Login
from identity.login_kinds import LOGIN_KINDS, LoginKind
from identity.similar import did_you_mean
from ops.stack import plugins
from ops.stack.chosen_stack import chosen_stack, require_stack, stack_names
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError, message, printable
from ops.stack.streaming import Deadline

if TYPE_CHECKING:
    from ops.stack.engine import Engine
    from ops.world.reader import Selection


def complete_clusters(context: typer.Context) -> list[str]:
    """The hosted clusters in the file of the command line's stack."""
    from identity.settings.stack_file import written_for
    from ops.stack.configuration import named_clusters

    try:
        stack = context.params.get("stack") or chosen_stack()[0]
    except CommandError:
        return []
    written = written_for(stack, ROOT) or {}
    return [cluster["name"] for cluster in named_clusters(written.get("hostedClusters"))]


def complete_identities(context: typer.Context) -> list[str]:
    """The control-plane identities, without and with each hosted cluster."""
    from identity.catalogue import CONTROL_PLANE

    fields = [row.field for row in CONTROL_PLANE]
    return [*fields, *(f"{cluster}/{field}" for cluster in complete_clusters(context) for field in fields)]


_KINDS: Final = "How to sign in: " + "; ".join(f"{kind}, {row.description}" for kind, row in LOGIN_KINDS.items())


@dataclass(frozen=True, kw_only=True)
class LoginOptions:
    """How to sign in to an API server; the options have the names of `Login`'s attributes."""

    kind: Annotated[LoginKind | None, typer.Option("--login", help=_KINDS)] = None
    tenant_id: Annotated[str | None, typer.Option(help="Tenant of the cluster.")] = None
    client_id: Annotated[str | None, typer.Option(help="Application (client) id of the identity.")] = None
    certificate: Annotated[Path | None, typer.Option(help="Credential document, PEM or PKCS#12.")] = None
    certificate_password_file: Annotated[
        Path | None, typer.Option(help="File with the password of the certificate.")
    ] = None
    client_secret_file: Annotated[Path | None, typer.Option(help="File with the client secret.")] = None
    federated_token_file: Annotated[Path | None, typer.Option(help="File with a federated token.")] = None
    imds_endpoint: Annotated[str | None, typer.Option(help="Endpoint of IMDS, if it is not the usual one.")] = None
    authority_host: Annotated[str | None, typer.Option(help="Authority host of the cluster's cloud.")] = None
    server_id: Annotated[str | None, typer.Option(help="Application (client) id of the AKS API servers.")] = None

    def login(self, **defaults: Any) -> Login:
        """The login of the given options, with these `defaults` for the others; raises LoginRefusedError."""
        return Login(**{name: value for name, value in (*defaults.items(), *vars(self).items()) if value})


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command an option for each field of those of its parameters that are a dataclass of options."""
    own = signature(command, eval_str=True).parameters.values()
    kinds: dict[str, Any] = {one.name: one.annotation for one in own if is_dataclass(one.annotation)}
    groups = {name: signature(kind, eval_str=True).parameters for name, kind in kinds.items()}

    @wraps(command)
    def called(**given: Any) -> None:
        for name, options in groups.items():
            if name not in given:  # another command has them
                given[name] = kinds[name](**{option: given.pop(option) for option in options})
        command(**given)

    every = chain.from_iterable([*groups[one.name].values()] if one.name in groups else [one] for one in own)
    vars(called)["__signature__"] = Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in every])
    return called


def bare_name(name: str) -> str:
    """The name of a stack, which is bare: the organization comes from the login. Raises BadParameter for another."""
    if "/" in name:
        own = name.rpartition("/")[2]
        raise typer.BadParameter(message("options.not-bare", name=name, own=own))
    return name


DEFAULT_CHOICE: Final = "PULUMI_STACK, or the selected stack, or local"


def _stack_option(*, has_file: bool) -> Any:
    """`--stack`, whose value is the bare name of the named or chosen stack; `has_file`: which the project must have."""

    def named(context: typer.Context, name: str) -> str:
        if context.resilient_parsing:
            return name
        if not name:
            name, why = chosen_stack()
            if why is not None:
                print(f"stack {name}, chosen by {why}", file=sys.stderr)
        if has_file:
            require_stack(bare_name(name))
        return bare_name(name)

    return typer.Option(
        *("--stack", "-s"),
        help="Name of the stack.",
        show_default=DEFAULT_CHOICE,
        callback=named,
        autocompletion=lambda: stack_names(),
    )


StackOption: TypeAlias = Annotated[str, _stack_option(has_file=True)]
NamedStackOption: TypeAlias = Annotated[str, _stack_option(has_file=False)]
ClusterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        *("--cluster", "-c"), help="Name of one hosted cluster; all by default.", autocompletion=complete_clusters
    ),
]
IdentityOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        *("--identity", "-i"),
        metavar="[CLUSTER/]IDENTITY",
        help="One identity; all by default.",
        autocompletion=complete_identities,
    ),
]
# What `-o` means to az and kubectl.
_FORMATS: Final = frozenset(
    {"html", "json", "jsonc", "mermaid", "none", "svg", "table", "tsv", "wide", "yaml", "yamlc"}
)


def output_option(help: str) -> Any:
    """`--output`, a file; a bare word that az or kubectl would take for a format is refused."""

    def named(file: Path | None) -> Path | None:
        if str(file) in _FORMATS:
            raise typer.BadParameter(f"a file is named here, and {file} is a format; ./{file} is the file of that name")
        return file

    return typer.Option("--output", "-o", metavar="FILE", help=help, callback=named)


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


def selected(cluster: str | None, identity: str | None, pod: str | None = None) -> Selection:
    """What these options select. Raises BadParameter for names that contradict each other."""
    from ops.world.reader import Selection

    try:
        return Selection.of(cluster, identity, pod)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def require_cluster(stack: str, cluster: str | None, known: Collection[str]) -> None:
    """Raise CommandError for a hosted cluster that is not among those of the stack; None is all of them."""
    if cluster is not None and cluster not in known:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise CommandError(f"the stack {stack} has no hosted cluster {cluster}; {has}{did_you_mean(cluster, known)}")


class _PrintableConsole(Console):
    """A console on which names and tags of others do not control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


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
        console = _PrintableConsole(stderr=self.as_json, highlight=False, soft_wrap=True, markup=False, emoji=False)
        if not console.is_terminal:
            console.width = _UNLIMITED_WIDTH
        return console

    def step(self, name: str) -> None:
        self.console.print(name, style="bold")

    def document(self, document: Any) -> None:
        print(json.dumps(document, indent=2))

    def show(self, document: Any, *texts: RenderableType) -> None:
        """Print the document with `--json`, and each of the texts without."""
        if self.as_json:
            self.document(document)
        for text in texts if not self.as_json else ():
            self.console.print(text)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a command that runs the engine for a stack."""

    stack: StackOption = DEFAULT_STACK
    time_limit: TimeLimitOption = None
    as_json: JsonOption = False

    def opened(self) -> tuple[Engine, Screen]:
        """The stack's engine, and the screen that it prints to."""
        from ops.stack.engine import Engine

        screen = Screen(self.as_json)
        return Engine(self.stack, output=screen.output, deadline=self.time_limit), screen


class Inspector(Protocol):
    """What a command that changes a stack asks of those that inspect it; it imports none of them (`ops/cli.py`)."""

    def show_status(self, engine: Engine, screen: Screen) -> None:
        """Print what `status` shows; raises CommandError for an identity that cannot sign in, and for findings."""

    def ended_credentials(self, engine: Engine, clusters: Collection[str]) -> str | None:
        """A warning about the credentials with which HyperShift deletes these hosted clusters; None for sound ones."""


def inspector(context: typer.Context) -> Inspector:
    return cast("Inspector", context.obj)
