"""`idstack renew`: renew the certificates that are due, without other changes of configuration or program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import typer
from rich.console import Console

from identity.credentials import renewal_request
from identity.credentials.renewal_request import RenewalRequest
from ops.commands.local_start import prepare
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption, TimeLimitOption, inspector
from ops.outputs.rows import rows
from ops.renewal.guard import Renewable, Verdict, judge, renewable
from ops.stack import brought_up
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.moved_clusters import refuse_half_moves
from ops.stack.settings import require_sound_configuration


def renew(
    context: typer.Context,
    stack: StackOption = DEFAULT_STACK,
    time_limit: TimeLimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Renew the certificates that are due, and change nothing else. Other options go to `pulumi up`.

    It runs the commit that was last deployed, not the checkout.
    """
    screen = Screen(as_json)
    engine = Engine(stack, output=screen.output, deadline=time_limit)
    prepare_renewal(context, engine, screen)
    identities = renewable(engine.resources())
    clusters = engine.outputs().get("hostedClusters", {}).values()
    if clusters and not any(cluster["controlPlane"] for cluster in clusters):
        screen.console.print(f"no identity of the stack {stack} has a certificate: nothing expires")
        inspector(context).show_status(engine, screen)
        return
    if not identities:
        raise CommandError(
            f"the stack {stack} has no certificate to renew: `.venv/bin/idstack up --stack {stack}` issues the first"
        )
    outcome = RenewalRun(engine, screen.console, {}, context.args).renew(identities)
    inspector(context).show_status(engine, screen)
    if overdue := _due(engine, outcome.left_out):
        raise CommandError(f"a renewal is due and was left out: {', '.join(overdue)}; the reasons are printed above")
    if outcome.failed:
        raise CommandError(
            f"a renewal of {', '.join(outcome.failed)} would fail, due or not; the reasons are printed above"
        )


def prepare_renewal(context: typer.Context, engine: Engine, screen: Screen) -> None:
    """Prepare a run that only renews, or exit with the code of this command at the commit that was last brought up.

    Raises CommandError for an unsound configuration and an interrupted move.
    """
    prepare(engine, screen, is_known=True)
    if (code := brought_up.run_instead(engine, engine.outputs().get("commit"), screen.console)) is not None:
        raise typer.Exit(code)
    require_sound_configuration(engine)
    refuse_half_moves(engine)


def _due(engine: Engine, names: Collection[str]) -> list[str]:
    now = datetime.now(UTC)
    return [
        name
        for row in rows(engine.outputs(), None)
        if (name := f"{row.cluster}/{row.identity}") in names and row.renew_after is not None and row.renew_after <= now
    ]


@dataclass(frozen=True)
class RenewalOutcome:
    """Names of the identities that were renewed, and of those that were left out, due or not.

    `failed` are those of the latter whose renewal cannot be planned, because of errors.
    """

    renewed: tuple[str, ...]
    left_out: tuple[str, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True)
class RenewalRun:
    """Renews the chosen identities in one `pulumi up`.

    `requests` are by the schedules' names; a schedule without one decides by itself what is due. `arguments` are
    further options of `pulumi up`.
    """

    engine: Engine
    console: Console
    requests: Mapping[str, RenewalRequest]
    arguments: Sequence[str] = ()

    def renew(self, identities: Sequence[Renewable]) -> RenewalOutcome:
        """Renew the `identities` of the stack's state whose plan has a renewal and no other change.

        A line reports each one that is left out, with the other changes. Raises CommandError, before any change, if
        there is no plan, or it has steps of other resources.
        """
        verdict, left_out, failed = self._judge(identities)
        asked = next(iter(self.requests.values()), RenewalRequest.RENEW)
        done = {RenewalRequest.WITHDRAW: "withdrawn", RenewalRequest.REGISTER: "registered"}.get(asked, "renewed")
        for name, why in left_out.items():
            self.console.print(f"{name}: left out, because {why}")
        if verdict.renewed:
            self.console.print(f"{done} now: {', '.join(identity.name for identity in verdict.renewed)}")
            # A failed renewal must not prevent the others.
            options = ("--continue-on-error", *_targets(verdict.renewed), *self.arguments)
            self.engine.up(options, self._environment)
        else:
            self.console.print(f"nothing is {done}")
        return RenewalOutcome(tuple(identity.name for identity in verdict.renewed), tuple(left_out), tuple(failed))

    def _judge(self, identities: Sequence[Renewable]) -> tuple[Verdict, dict[str, str], list[str]]:
        """The verdict of the first plan without refusals; the identities left out before, with reasons; and those whose
        renewal failed.
        """
        state, is_settled = self.engine.resources(), brought_up.is_clean(self.engine.outputs().get("commit"))
        failed: list[str] = []
        left_out = {
            identity.name: self._more(["its first `up` has not stored a credential yet"])
            for identity in identities
            if identity.secret is None and self.requests.get(identity.schedule_name) is not RenewalRequest.REPLACE
        }
        while True:
            chosen = [identity for identity in identities if identity.name not in left_out]
            if not chosen:
                return Verdict((), {}, ()), left_out, failed
            refresh = [argument for argument in self.arguments if argument == "--refresh"]
            plan = self.engine.proposed([*_targets(chosen), *refresh], self._environment)
            verdict = judge(chosen, plan, state, is_settled=is_settled)
            if not verdict.refused and verdict.blocked:
                raise CommandError(
                    "no certificate was renewed, because the plan has errors, or other changes than renewals:\n"
                    + "\n".join(f"  {reason}" for reason in verdict.blocked)
                )
            if not verdict.refused:
                return verdict, left_out, failed
            failed += sorted(verdict.failed)
            for name, reasons in verdict.refused.items():
                errors = "; ".join(reason.removeprefix("error: ") for reason in reasons)
                left_out[name] = f"its renewal fails: {errors}" if name in verdict.failed else self._more(reasons)

    def _more(self, reasons: Iterable[str]) -> str:
        return (
            f"a renewal would bring up other changes: {'; '.join(reasons)}. "
            f"`.venv/bin/idstack up --stack {self.engine.stack}` does so, and renews what is due"
        )

    @property
    def _environment(self) -> Mapping[str, str]:
        """The variable that tells the program that the run only renews."""
        return renewal_request.write(self.requests)


def _targets(identities: Iterable[Renewable]) -> list[str]:
    # By names, because a pattern for all would also match identities that no `up` has created yet.
    return [argument for identity in identities for target in identity.as_targets for argument in ("--target", target)]
