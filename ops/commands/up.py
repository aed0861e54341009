"""`idstack up`: the local cloud, the stack, its probes, and the table that shows whether every sign-in works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import typer
from rich.console import Console

from identity.clouds import LocalEnvironment
from identity.credentials.backoff import Backoff
from identity.outputs import StackOutputs
from ops.commands.local_start import start_local_cloud
from ops.commands.options import (
    DEFAULT_STACK,
    JsonOption,
    PoliciesOption,
    ProvidersOption,
    Screen,
    StackOption,
    TimeLimitOption,
)
from ops.commands.token_probes import deployments
from ops.guards.infra_ids import refuse_duplicates
from ops.outputs.rows import Row, TokenProbe, TokenRow, has_probes, rows, token_probes, token_rows
from ops.outputs.tables import sign_ins, tokens, with_caption
from ops.stack import local_cloud, plugins
from ops.stack.engine import Engine
from ops.stack.environment import LOCAL_STACK, policy_pack
from ops.stack.errors import CommandError
from ops.stack.moved_clusters import refuse_moves
from ops.stack.settings import require_sound_configuration, settings_of
from ops.world import probes
from ops.world.obstacle_owners import naming_owners
from ops.world.probes import ProbeResult

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
    """Deploy a stack; start the cloud of a local one, and show its sign-ins. Other options go to `pulumi up`."""
    screen = Screen(as_json)
    engine = Engine(stack, output=screen.output, deadline=time_limit)
    require_sound_configuration(engine)
    plugins.choose_for(stack, providers)
    arguments = [*policy_pack(stack, wanted=policies), *context.args]
    environment = start_local_cloud(screen) if engine.is_local else None
    if environment is not None:
        screen.step("pulumi up")
        engine.prepare()
    refuse_moves(engine)
    refuse_duplicates(engine, engine.resources(), screen.console.print)
    with naming_owners(engine):
        engine.up(arguments)
    if environment is None:
        _show(engine, screen)
        return
    outputs = engine.outputs()
    accounts = _play_control_planes(engine, outputs, screen)
    if not accounts and not has_probes(outputs):
        screen.step("credentials: HyperShift's operators create the pods, so there are no probes")
        _show(engine, screen)
        return
    screen.step("credential probes")
    signed = _wait_until_green(lambda: _read_sign_ins(outputs, accounts, environment), screen.console)
    if has_probes(outputs):
        _show_sign_ins(stack, signed, environment, screen)
    else:
        _show(engine, screen)


@dataclass(frozen=True)
class ProbeRows:
    """The rows of a local stack's probes: of certificates, and of service accounts."""

    certificates: list[Row]
    accounts: list[TokenRow]

    @property
    def probes(self) -> list[ProbeResult]:
        """The reports of all rows."""
        return [*(probe for row in self.certificates for probe in row.probes), *(row.probe for row in self.accounts)]


def _read_sign_ins(
    outputs: StackOutputs[str], accounts: Iterable[TokenProbe], environment: LocalEnvironment
) -> ProbeRows:
    results = probes.read(Path(environment.kubeconfig))
    certificates = [row for row in rows(outputs, results) if row.probes]
    return ProbeRows(certificates, token_rows(accounts, results))


def _show_sign_ins(stack: str, signed: ProbeRows, environment: LocalEnvironment, screen: Screen) -> None:
    """Print the tables of the probes; raises CommandError if one is not green."""
    if screen.as_json:
        now = datetime.now(UTC)
        kinds = {plugin.name: plugin.kind for plugin in plugins.installed()}
        document = {"stack": stack, "providers": kinds, "rows": [row.to_json(now) for row in signed.certificates]}
        if signed.accounts:
            document["serviceAccounts"] = [row.to_json() for row in signed.accounts]
        screen.document(document)
    elif not signed.probes:
        screen.console.print("none: the stack has no hosted cluster; other stacks may name it in their sharedStack")
    else:
        mounts, width = Path(environment.mounts_dir), screen.console.width
        tables = [sign_ins(signed.certificates, mounts, width)] if signed.certificates else []
        if signed.accounts:
            tables.append(tokens(signed.accounts, mounts, width))
        with_caption(tables[-1], plugins.describe(plugins.installed()))
        for place, table in enumerate(tables):
            if place:
                screen.console.print()
            screen.console.print(table)
    failing = [row.identity for row in signed.certificates if not row.is_green]
    failing += [row.of.subject for row in signed.accounts if not row.probe.is_ready]
    if failing:
        raise CommandError(f"not every sign-in works: {', '.join(failing)}")
    screen.console.print(_next_steps(stack, environment))


def _show(engine: Engine, screen: Screen) -> None:
    # The doctor's checks take a third of a second to import, which a stack with probes does not need.
    from ops.commands.status import show

    show(engine, screen)


def _play_control_planes(engine: Engine, outputs: StackOutputs[str], screen: Screen) -> list[TokenProbe]:
    """Run probes for the control planes of clusters with workload identities; returns them."""
    probes, documents = deployments(settings_of(engine), outputs) if token_probes(outputs) else ([], [])
    local_cloud.play(engine.stack, documents, output=screen.output)
    return probes


def _wait_until_green(read: Callable[[], ProbeRows], console: Console) -> ProbeRows:
    """The rows once all are green, or after the timeout."""
    deadline, backoff = time.monotonic() + _TIMEOUT, Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
    last_line = ""
    with console.status("waiting for the probes") as spinner:
        while True:
            signed = read()
            ready = sum(probe.is_ready for probe in signed.probes)
            line = f"{ready} of {len(signed.probes)} probes ready"
            if line != last_line:
                spinner.update(line)
                if not console.is_terminal:
                    console.print(line)
            last_line = line
            if ready == len(signed.probes) or time.monotonic() > deadline:
                return signed
            time.sleep(backoff.next())


def _next_steps(stack: str, environment: LocalEnvironment) -> str:
    of_make, option = ("", "") if stack == LOCAL_STACK else (f" STACK={stack}", f" --stack {stack}")
    steps = {
        f"make preview{of_make}": f"after an edit of Pulumi.{stack}.yaml: exactly that change",
        f".venv/bin/idstack status{option}": "expiry, renewal, live sign-ins",
        ".venv/bin/idstack local env": "the endpoints of the local Azure and Kubernetes",
        f"make down{of_make}": "remove the stack, and the local cloud with the last one",
    }
    width = max(map(len, steps)) + 3
    listed = "\n".join(f"  {command:{width}}{effect}" for command, effect in steps.items())
    return f"\nFiles: {environment.mounts_dir}/<namespace>/<workload>/<path>\n\nTry next:\n{listed}"
