"""`idstack renew`: renew the certificates that are due, without other changes of configuration or program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import typer
from rich.console import Console

from identity.credentials import renewal_request
from identity.credentials.renewal_request import RenewalRequest
from ops.commands.local import prepare
from ops.commands.options import RunOptions, Screen, inspector, with_options
from ops.outputs.rows import rows
from ops.renewal.guard import Renewable, Verdict, judge, renewable
from ops.stack import brought_up
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message
from ops.stack.settings import require_sound_configuration
from ops.world.stacks import refuse_half_moves


@with_options
def renew(context: typer.Context, *, run: RunOptions) -> None:
    """Renew the certificates that are due, and change nothing else. Other options go to `pulumi up`.

    It runs the commit that was last deployed, not the checkout.
    """
    engine, screen = run.opened()
    prepare_renewal(context, engine, screen)
    identities = renewable(engine.resources())
    clusters = engine.outputs().get("hostedClusters", {}).values()
    if clusters and not any(cluster["controlPlane"] for cluster in clusters):
        screen.console.print(f"no identity of the stack {run.stack} has a certificate: nothing expires")
        inspector(context).show_status(engine, screen)
        return
    if not identities:
        raise CommandError(message("renew.nothing", stack=run.stack))
    verdict = RenewalRun(engine, screen.console, {}, context.args).renew(identities)
    inspector(context).show_status(engine, screen)
    now, dates = datetime.now(UTC), rows(engine.outputs(), None)
    due = [f"{row.cluster}/{row.identity}" for row in dates if row.renew_after is not None and row.renew_after <= now]
    if overdue := [name for name in due if name in verdict.refused]:
        raise CommandError(f"a renewal is due and was left out: {', '.join(overdue)}; the reasons are printed above")
    if verdict.failed:
        raise CommandError(message("renew.would-fail", names=", ".join(sorted(verdict.failed))))


def prepare_renewal(context: typer.Context, engine: Engine, screen: Screen) -> None:
    """Prepare a run that only renews, or exit with the code of this command at the commit that was last brought up.

    Raises CommandError for an unsound configuration and an interrupted move.
    """
    prepare(engine, screen, is_known=True)
    if (code := brought_up.run_instead(engine, engine.outputs().get("commit"), screen.console)) is not None:
        raise typer.Exit(code)
    require_sound_configuration(engine)
    refuse_half_moves(engine)


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

    def renew(self, identities: Sequence[Renewable]) -> Verdict:
        """Renew the `identities` of the stack's state whose plan has a renewal and no other change.

        A line reports each one that is left out (`Verdict.refused`). Raises CommandError, before any change, if there
        is no plan, or it has steps of other resources.
        """
        verdict = self._judge(identities)
        asked = next(iter(self.requests.values()), RenewalRequest.RENEW)
        done = {RenewalRequest.WITHDRAW: "withdrawn", RenewalRequest.REGISTER: "registered"}.get(asked, "renewed")
        for name, reasons in verdict.refused.items():
            why = f"a renewal would bring up other changes: {'; '.join(reasons)}. "
            why += f"`.venv/bin/idstack up --stack {self.engine.stack}` does so, and renews what is due"
            if name in verdict.failed:
                why = f"its renewal fails: {'; '.join(reason.removeprefix('error: ') for reason in reasons)}"
            self.console.print(f"{name}: left out, because {why}")
        if verdict.renewed:
            self.console.print(f"{done} now: {', '.join(identity.name for identity in verdict.renewed)}")
            # A failed renewal must not prevent the others. But pulumi 3.276 deletes what is replaced even if it skips
            # the secret, which depends on that in the state, and then refuses the state.
            goes_on = () if asked is RenewalRequest.REPLACE else ("--continue-on-error",)
            options = (*goes_on, *_targets(verdict.renewed), *self.arguments)
            self.engine.up(options, self._environment)
        else:
            self.console.print(f"nothing is {done}")
        return verdict

    def _judge(self, identities: Sequence[Renewable]) -> Verdict:
        """The verdict of the first plan without refusals, with those of the plans before it."""
        state, is_settled = self.engine.resources(), brought_up.is_clean(self.engine.outputs().get("commit"))
        refused: dict[str, Sequence[str]] = {
            identity.name: ["its first `up` has not stored a credential yet"]
            for identity in identities
            if identity.secret is None and self.requests.get(identity.schedule_name) is not RenewalRequest.REPLACE
        }
        failed: frozenset[str] = frozenset()
        refresh = [argument for argument in self.arguments if argument == "--refresh"]
        while chosen := [identity for identity in identities if identity.name not in refused]:
            plan = self.engine.proposed([*_targets(chosen), *refresh], self._environment)
            verdict = judge(chosen, plan, state, is_settled=is_settled)
            if not verdict.refused and verdict.blocked:
                raise CommandError(message("renew.blocked"), *(f"  {reason}" for reason in verdict.blocked))
            if not verdict.refused:
                return replace(verdict, refused=refused, failed=failed)
            refused |= verdict.refused
            failed |= verdict.failed
        return Verdict((), refused, (), failed)

    @property
    def _environment(self) -> Mapping[str, str]:
        """The variable that tells the program that the run only renews."""
        return renewal_request.write(self.requests)


def _targets(identities: Iterable[Renewable]) -> list[str]:
    # By names, because a pattern for all would also match identities that no `up` has created yet.
    return [argument for identity in identities for target in identity.as_targets for argument in ("--target", target)]
