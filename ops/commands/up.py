"""`idstack up`: the local cloud, the stack, its probes, and the table that shows whether every sign-in works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import typer
from rich.console import Console

from identity.clouds import LocalEnvironment
from identity.credentials.backoff import Backoff
from identity.outputs import StackOutputs
from ops.commands.options import (
    DEFAULT_STACK,
    JsonOption,
    PoliciesOption,
    ProvidersOption,
    Screen,
    StackOption,
    TimeLimitOption,
    own_options,
    policy_pack,
)
from ops.commands.status import show
from ops.commands.token_probes import apply, remove
from ops.guards.infra_ids import refuse_duplicates
from ops.outputs.rows import has_probes, rows
from ops.outputs.tables import sign_ins, with_caption
from ops.outputs.token_rows import TokenProbe, token_probes, token_rows
from ops.stack import local_cloud, plugins
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.known_schema import of_known_schema
from ops.stack.moved_clusters import refuse_moves
from ops.stack.passed_on import require_known
from ops.stack.settings import require_sound_configuration, settings_of
from ops.world import probes
from ops.world.adoption_guard import naming_owners
from ops.world.probes import ProbeResult

T = TypeVar("T")

_TIMEOUT: Final = 180.0  # seconds; ten probes start in about ten on two cores
# Between two reads of the probes, in seconds.
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 1.0


def up(
    context: typer.Context,
    stack: StackOption = DEFAULT_STACK,
    time_limit: TimeLimitOption = None,
    as_json: JsonOption = False,
    providers: ProvidersOption = None,
    policies: PoliciesOption = False,
) -> None:
    """Bring a stack up; a local one with its cloud, its probes and their table. Other options go to `pulumi up`."""
    screen = Screen(as_json)
    engine = Engine(stack, output=screen.output, deadline=time_limit)
    require_known(engine, "up", context.args, own_options(context))
    require_sound_configuration(engine)
    plugins.choose_for(stack, providers)
    arguments = [*policy_pack(stack, wanted=policies), *context.args]
    if not engine.is_local:
        refuse_moves(engine)
        refuse_duplicates(engine, of_known_schema(engine.resources()), screen.console.print)
        with naming_owners(engine, None):
            engine.up(arguments)
        show(engine, screen)
        return
    environment = start_local_cloud(screen)
    screen.step("pulumi up")
    engine.prepare()
    refuse_moves(engine)
    refuse_duplicates(engine, of_known_schema(engine.resources()), screen.console.print)
    with naming_owners(engine, environment):
        engine.up(arguments)
    outputs = engine.outputs()
    kubeconfig = Path(environment.kubeconfig)
    if not has_probes(outputs):
        _prove_tokens(engine, environment, outputs, screen)
        show(engine, screen)
        return
    screen.step("credential probes")
    identities = _wait_until_green(
        lambda: rows(outputs, probes.read(kubeconfig)), lambda row: row.probes, screen.console
    )
    if as_json:
        now = datetime.now(UTC)
        kinds = {plugin.name: plugin.kind for plugin in plugins.installed()}
        screen.document({"stack": stack, "providers": kinds, "rows": [row.to_json(now) for row in identities]})
    elif not identities:
        screen.console.print("none: the stack has no hosted cluster; other stacks may name it in their sharedStack")
    else:
        table = sign_ins(identities, Path(environment.mounts_dir), screen.console.width)
        screen.console.print(with_caption(table, plugins.describe(plugins.installed())))
    failing = [row.identity for row in identities if not row.is_green]
    if failing:
        raise CommandError(f"not every sign-in works: {', '.join(failing)}")
    screen.console.print(_next_steps(stack, environment))


def start_local_cloud(screen: Screen) -> LocalEnvironment:
    """Start and seed the local cloud, if it does not run; returns its endpoints.

    Raises CommandError if a step fails.
    """
    screen.step("local cloud")
    local_cloud.do("start", output=screen.output)
    environment = local_cloud.record()
    if environment is None:
        raise CommandError("the local cloud started but wrote no record of its endpoints: see .localcloud/*.log")
    return environment


def _prove_tokens(engine: Engine, environment: LocalEnvironment, outputs: StackOutputs[str], screen: Screen) -> None:
    """Run probes for the control planes of clusters with workload identities, and wait until they are ready.

    `show` prints their table.
    """
    applied: list[TokenProbe] = []
    if token_probes(outputs):
        applied = apply(environment, engine.stack, settings_of(engine), outputs)
    else:
        remove(environment, engine.stack)
    clusters = {probe.cluster for probe in applied}
    if clusters != set(outputs.get("hostedClusters", {})):
        screen.step("credentials: HyperShift's operators create the pods, so there are no probes")
    if applied:
        screen.step(f"probes of service accounts: {', '.join(sorted(clusters))}")
        kubeconfig = Path(environment.kubeconfig)
        _wait_until_green(lambda: token_rows(applied, probes.read(kubeconfig)), lambda row: [row.probe], screen.console)


def _wait_until_green(
    read: Callable[[], list[T]], probes_of: Callable[[T], Iterable[ProbeResult]], console: Console
) -> list[T]:
    """The rows once all are green, or after the timeout."""
    deadline, backoff = time.monotonic() + _TIMEOUT, Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
    last_line = ""
    with console.status("waiting for the probes") as spinner:
        while True:
            results = read()
            results_of_probes = [probe for row in results for probe in probes_of(row)]
            ready = sum(probe.is_ready for probe in results_of_probes)
            line = f"{ready} of {len(results_of_probes)} probes ready"
            if line != last_line:
                spinner.update(line)
                if not console.is_terminal:
                    console.print(line)
            last_line = line
            if ready == len(results_of_probes) or time.monotonic() > deadline:
                return results
            time.sleep(backoff.next())


def _next_steps(stack: str, environment: LocalEnvironment) -> str:
    return (
        f"\nFiles: {environment.mounts_dir}/<namespace>/<workload>/<path>\n\n"
        "Try next:\n"
        f"  make preview                  after an edit of Pulumi.{stack}.yaml: exactly that change\n"
        "  .venv/bin/idstack status      expiry, renewal, live sign-ins\n"
        "  .venv/bin/idstack local env   the endpoints of the local Azure and Kubernetes\n"
        "  make down                     end every process and remove the state"
    )
