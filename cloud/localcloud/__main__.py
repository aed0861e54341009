"""`python -m localcloud`, or `idstack local`: start, stop, run, env, exec, shell, requests, contents, seed, faults,
issue-msi, pods, recover, kubelet.

Each may be repeated. Messages name the program as it was started.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from localcloud.apiserver.apply import NotAppliedError
from localcloud.apiserver.commands import NotBuiltError
from localcloud.core import processes
from localcloud.core.clouds import LocalEnvironment
from localcloud.core.cluster import ClusterKind, ClusterKindConflictError
from localcloud.core.state_directory import DEFAULT, StateDirectory
from localcloud.core.store import StoreError
from localcloud.runtime import lifecycle
from localcloud.runtime.lifecycle import NotStartedError
from localcloud.runtime.seed_errors import InvalidSeedError, NotSeededError, SeedConflictError

if TYPE_CHECKING:
    from localcloud.runtime.seed_file import Seed

STATE_DIRECTORY_VARIABLE = "LOCALCLOUD_STATE_DIR"
CLUSTER_VARIABLE = "LOCALCLOUD_CLUSTER"
SEED_VARIABLE = "LOCALCLOUD_SEED"
# The client of `--as` that has no secret in a vault.
_OWNER = "owner"


# Their messages say what is wrong and what helps.
_OF_THE_USER = (
    *(StoreError, InvalidSeedError, SeedConflictError, NotSeededError),
    *(NotStartedError, NotAppliedError, NotBuiltError, ClusterKindConflictError),
)


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _OF_THE_USER as error:
            raise _failure(str(error)) from None


cli = typer.Typer(
    cls=_Commands,
    help="Azure and Kubernetes on this machine, for the local stack. Its directory has a log of each process, *.log.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


SecretOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="owner|SECRET",
        help="Sign in as the subscription's owner, who may do what the deployer may not, or with the credential "
        "document in this secret of the stack's vault, or <vault>/<secret>; the deployer by default.",
    ),
]

SeedOption = Annotated[
    Path | None,
    typer.Option(
        "--seed",
        envvar=SEED_VARIABLE,
        metavar="FILE",
        help="The seed, YAML. Default: the seed of the last start, else the package's own.",
    ),
]


@cli.callback()
def main(
    context: typer.Context,
    state_dir: Annotated[Path, typer.Option(envvar=STATE_DIRECTORY_VARIABLE, help="Directory of its files.")] = DEFAULT,
) -> None:
    """Take the options that all commands share: the state directory."""
    context.obj = StateDirectory(state_dir.absolute())


@cli.command()
def start(
    context: typer.Context,
    cluster: Annotated[
        ClusterKind | None,
        typer.Option(
            envvar=CLUSTER_VARIABLE, help="Which Kubernetes API to run; fixed at the first start. Default: builtin."
        ),
    ] = None,
    seed_file: SeedOption = None,
) -> None:
    """Start every process, wait until every service answers, and create the resources of the seed."""
    state: StateDirectory = context.obj
    wanted = _seed(seed_file)
    try:
        started = lifecycle.start(state, cluster, wanted)
    except OSError as error:
        raise _failure(str(error)) from None
    what = f"started {_listed(started)}" if started else "runs already"
    typer.echo(f"local cloud {what}: {state.environment_file}")
    _create(state, wanted)


@cli.command()
def stop(
    context: typer.Context,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the state directory, too.")] = False,
) -> None:
    """End every process, first those that the kubelet started."""
    state: StateDirectory = context.obj
    if not state.exists():
        typer.echo(f"no local cloud in {state.root}")
        return
    ended = lifecycle.stop(state)
    what = f"ended {', '.join(ended)}" if ended else "did not run"
    if remove:
        state.remove()
        what += f"; removed {state.root}"
    typer.echo(f"local cloud {what}")


@cli.command()
def run(context: typer.Context) -> None:
    """Serve in the foreground until interrupted."""
    # The services' imports take a second, which the other commands need not wait for.
    from localcloud.runtime import daemon
    from localcloud.runtime.environment import PortTakenError

    _log()
    try:
        daemon.run(context.obj)
    except (daemon.AlreadyRunningError, PortTakenError) as error:
        raise _failure(str(error)) from None


@cli.command()
def kubelet(context: typer.Context) -> None:
    """Run the kubelet in the foreground until interrupted."""
    from localcloud.kubelet import run as run_kubelet

    state: StateDirectory = context.obj
    environment = _environment(context)
    if other := processes.alive(state.pids, lifecycle.KUBELET):
        raise _failure(f"the kubelet of {state.root} is running already, as process {other.pid}")
    _log()
    record = processes.record(state.pids, lifecycle.KUBELET, os.getpid())
    try:
        run_kubelet(environment, state.kubelet_kubeconfig)
    finally:
        record.file.unlink(missing_ok=True)


@cli.command()
def env(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> None:
    """Print the addresses of the local cloud."""
    environment = _environment(context)
    if as_json:
        typer.echo(environment.to_json(), nl=False)
        return
    fields = vars(environment)
    width = max(map(len, fields))
    for name, value in fields.items():
        typer.echo(f"{name.replace('_', ' '):{width}}  {value}")


@cli.command()
def seed(context: typer.Context, seed_file: SeedOption = None) -> None:
    """Create the resources of the seed that are missing, as `start` does."""
    _create(context.obj, _seed(seed_file))


def _seed(file: Path | None) -> Seed | None:
    if file is None:
        return None
    from localcloud.runtime import seed_file

    try:
        return seed_file.load(file)
    except OSError as error:
        raise _failure(str(error)) from None


def _create(state: StateDirectory, wanted: Seed | None) -> None:
    from localcloud.core.files import write_private

    try:
        added = lifecycle.seed(state, wanted)
    except OSError as error:
        raise _failure(str(error)) from None
    if wanted is not None and wanted.faults is not None:
        write_private(state.held_faults_file, wanted.faults.to_json().encode())
    resources = "1 resource" if added == 1 else f"{added} resources"
    typer.echo(f"local cloud seeded: {resources} added" if added else "local cloud seeded already")


@cli.command()
def faults(
    context: typer.Context,
    hold: Annotated[
        typer.FileText | None,
        typer.Option(metavar="FILE", help="Hold the faults of this file, YAML or JSON; - is standard input."),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Hold no faults.")] = False,
) -> None:
    """Print the faults that are held now, or hold others: what services do instead of an ordinary answer."""
    from localcloud.azure.shared.held import FaultHolder, HeldFaults
    from localcloud.core.files import write_private

    state: StateDirectory = context.obj
    _environment(context)
    try:
        if hold is not None:
            write_private(state.held_faults_file, HeldFaults.parse(hold.read()).to_json().encode())
        elif clear:
            state.held_faults_file.unlink(missing_ok=True)
        typer.echo(FaultHolder(state.held_faults_file).now().to_json())
    except ValueError as error:
        raise _failure(str(error)) from None


@cli.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def exec_(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(help="Command with its arguments.")],
    secret: SecretOption = None,
) -> None:
    """Run a command (`az`, an SDK, Terraform, a script), signed in, for which Azure's names lead here."""
    raise typer.Exit(_run(context, command, secret))


@cli.command()
def shell(context: typer.Context, secret: SecretOption = None) -> None:
    """Open a shell in which every command runs as with `exec`."""
    typer.echo("Azure's names lead to the local cloud in this shell; `exit` ends it.", err=True)
    raise typer.Exit(_run(context, [os.environ.get("SHELL", "/bin/sh")], secret))


@cli.command()
def requests(
    context: typer.Context,
    service: Annotated[str, typer.Option(help="Only requests to this service, such as `arm`.")] = "",
    client: Annotated[str, typer.Option(help="Only clients whose User-Agent contains this text, in any case.")] = "",
    last: Annotated[int, typer.Option(min=1, help="The newest requests, at most this many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print each as a line of JSON.")] = False,
) -> None:
    """Print the requests of clients to Azure's services, without query, header or body; Kubernetes' are not logged."""
    from localcloud.core import request_log

    _environment(context)
    matching = (
        request
        for request in request_log.read(context.obj.requests_file)
        if service in ("", request.service) and client.lower() in request.client.lower()
    )
    for request in deque(matching, maxlen=last):
        if as_json:
            typer.echo(json.dumps(vars(request)))
        else:
            product = request.client.partition(" ")[0]
            typer.echo(
                f"{request.time}  {request.service:10}  {request.status}  {request.method:6}  {request.path}  {product}"
            )


@cli.command()
def contents(context: typer.Context) -> None:
    """Print kind and key of every resource as a line of JSON, also of deleted ones that Azure keeps."""
    _environment(context)
    with closing(context.obj.open_store()) as store:
        for kind, key in store.listed():
            typer.echo(json.dumps([kind, key]))


def _run(context: typer.Context, command: Sequence[str], secret: str | None) -> int:
    from localcloud.runtime import client_environment
    from localcloud.runtime.environment import prepare

    environment, state = _environment(context), context.obj
    if processes.alive(state.pids, lifecycle.DAEMON) is None:
        raise _failure(f"the local cloud does not run: `{_program(context)} start` starts it")
    client = client_environment.deployer(environment)
    if secret is not None:
        with closing(prepare(state)) as prepared:
            try:
                if secret == _OWNER:
                    client = client_environment.owner(prepared)
                else:
                    client = client_environment.holder_of(prepared.cloud, secret)
            except client_environment.UnknownClientError as error:
                raise _failure(f"--as {secret}: {error}") from None
    with client_environment.client_environment(environment, client) as variables:
        code = client_environment.run(command, variables)
    if code == client_environment.NOT_FOUND:
        where = "; learn.microsoft.com/cli/azure/install-azure-cli says how to get it" if command[0] == "az" else ""
        typer.echo(f"{command[0]}: not found{where}", err=True)
    return code


@cli.command()
def pods(context: typer.Context, group: Annotated[str, typer.Argument(help="Any name, a stack's.")]) -> None:
    """Run the pods of the Namespaces and Deployments on standard input, a JSON list, in place of the group's last."""
    from localcloud.apiserver.apply import apply_pods

    _environment(context)
    try:
        apply_pods(context.obj, group, json.load(sys.stdin))
    except (ValueError, KeyError, TypeError) as error:
        raise _failure(f"standard input is not a JSON list of Namespaces and Deployments: {error!r}") from None


@cli.command("issue-msi")
def issue_msi(
    context: typer.Context,
    identity: Annotated[str, typer.Argument(help="ARM id of a user-assigned managed identity.")],
    output: Annotated[Path | None, typer.Option(help="File to write; default <state dir>/run/msi/<name>.json.")] = None,
    force_new: Annotated[bool, typer.Option("--new", help="Issue a new one even if the current one is good.")] = False,
) -> None:
    """Issue a managed identity's credential document, as the first-party data plane does, into a file."""
    from localcloud.azure.msi.issuer import UnknownIdentityError, issue_credential
    from localcloud.core.files import write_private
    from localcloud.runtime.environment import prepare

    with closing(prepare(context.obj)) as prepared:
        try:
            document = issue_credential(prepared.cloud, identity, force_new=force_new)
        except UnknownIdentityError as error:
            raise _failure(f"{error}; `{_program(context)} seed` makes one to try with") from None
    file = output or prepared.state.msi / f"{identity.rpartition('/')[2]}.json"
    write_private(file, document.encode())
    typer.echo(f"issued: {file}")


@cli.command()
def recover(
    context: typer.Context,
    resource: Annotated[str, typer.Argument(help="ARM id of a soft-deleted vault, or of a secret.")],
) -> None:
    """Recover a soft-deleted vault or secret, as `az keyvault recover` and `az keyvault secret recover` do."""
    from localcloud.azure.keyvault.api import NotDeletedError
    from localcloud.azure.keyvault.api import recover as recover_resource
    from localcloud.runtime.environment import prepare

    with closing(prepare(context.obj)) as prepared:
        try:
            recover_resource(prepared.cloud, resource)
        except (NotDeletedError, ValueError) as error:
            raise _failure(str(error)) from None
    typer.echo(f"recovered: {resource}")


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _log() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("httpx", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _environment(context: typer.Context) -> LocalEnvironment:
    state: StateDirectory = context.obj
    try:
        return LocalEnvironment.from_file(state.environment_file)
    except FileNotFoundError:
        raise _failure(f"no local cloud in {state.root}: `{_program(context)} start` makes one") from None
    except ValueError as error:
        raise _failure(f"{error}. `{_program(context)} start` writes it again") from None


def _program(context: typer.Context) -> str:
    return str(context.find_root().info_name)


def _failure(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(1)


if __name__ == "__main__":
    cli(prog_name="python -m localcloud")
