"""`idstack rotate`: renew certificates now, before they are due."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Final, cast

import typer

from identity.catalogue import CONTROL_PLANE
from identity.credentials import rfc3339
from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import Delivery, Slot, Slots, spare_is_free
from identity.plugin_schema import CertificateSlot, CredentialSecretState, RenewalScheduleState
from identity.similar import similar
from ops.commands.options import RunOptions, Screen, complete_identities, inspector, with_options
from ops.commands.renew import RenewalRun, prepare_renewal
from ops.renewal.guard import Renewable, renewable
from ops.stack.errors import CommandError, WrongUsageError, message
from ops.stack.lock import LockedError


@with_options
def rotate(
    context: typer.Context,
    identity: Annotated[
        list[str] | None,
        typer.Option(
            *("--identity", "-i"),
            help="Field of the identity, or <cluster>/<field>; repeatable. Default: all.",
            autocompletion=complete_identities,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Renew even while pods may still need the replaced certificate, and name them."),
    ] = False,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="After a leak: deliver a new certificate, then revoke the leaked one.")
    ] = False,
    now: Annotated[
        bool, typer.Option("--now", help="With --revoke: revoke all certificates first, before there is a new one.")
    ] = False,
    register: Annotated[
        bool,
        typer.Option("--register", help="Register the delivered certificate that somebody took out of Entra ID again."),
    ] = False,
    *,
    run: RunOptions,
) -> None:
    """Renew certificates now. The old ones stay registered until the next renewal. Other options go to `pulumi up`."""
    if now and not revoke:
        raise WrongUsageError("--now requires --revoke: it says when the leaked certificate is withdrawn")
    if register and (revoke or force or not identity):
        raise WrongUsageError("--register requires --identity, and no --revoke or --force")
    engine, screen = run.opened()
    prepare_renewal(context, engine, screen)
    stored = [found for found in renewable(engine.resources()) if now or found.secret is not None]
    identities = chosen(run.stack, stored, identity or ())
    renewal = RenewalRun(engine, screen.console, context.args)
    if now:
        _replace(renewal, identities)
        if lost := [identity.name for identity in identities if identity.secret is None]:
            raise CommandError(message("rotate.no-secret", stack=run.stack, names=", ".join(lost)))
    elif register:
        # The state may not know yet that the certificate is gone.
        _run(replace(renewal, arguments=("--refresh", *context.args)), identities, RenewalRequest.REGISTER)
    elif revoke:
        screen.console.print(message("rotate.revoking", pods=_listed_pods(identities)))
        _run(renewal, identities, RenewalRequest.FORCE)
        _run(renewal, identities, RenewalRequest.WITHDRAW)
    else:
        _check_pods(identities, screen, force=force)
        _run(renewal, identities, RenewalRequest.FORCE if force else RenewalRequest.RENEW)
    inspector(context).show_status(engine, screen)


def _replace(renewal: RenewalRun, identities: Sequence[Renewable]) -> None:
    """Withdraw every certificate of these identities, then issue new ones.

    Raises CommandError with the withdrawn and the unchanged ones if it fails.
    """
    renewal.console.print(message("rotate.revoking-first", pods=_listed_pods(identities)))
    try:
        _run(renewal, identities, RenewalRequest.REPLACE)
    except LockedError:
        raise
    except CommandError as error:
        current = {candidate.name: slots(candidate) for candidate in renewable(renewal.engine.resources())}
        unchanged = [identity.name for identity in identities if current.get(identity.name) == slots(identity)]
        withdrawn = [candidate.name for candidate in identities if candidate.name not in unchanged]
        lines = []
        if withdrawn:
            lines.append(message("rotate.withdrawn", names=", ".join(withdrawn), stack=renewal.engine.stack))
        if unchanged:
            lines.append(message("rotate.perhaps-withdrawn", names=", ".join(unchanged)))
        raise CommandError(str(error), *lines) from None


def _run(renewal: RenewalRun, identities: Iterable[Renewable], request: RenewalRequest) -> None:
    """One `pulumi up` of these identities alone, with this request to their schedules.

    Raises CommandError if one of them had to be left out.
    """
    names = {identity.schedule_name for identity in identities}
    selected = [identity for identity in renewable(renewal.engine.resources()) if identity.schedule_name in names]
    verdict = renewal.renew(selected, request)
    if missing := [identity.name for identity in selected if identity not in verdict.renewed]:
        why = "the reasons are printed above" if verdict.refused else "the delivered certificate is at Entra ID"
        raise CommandError(f"unchanged: {', '.join(missing)}; {why}")


def _check_pods(identities: Iterable[Renewable], screen: Screen, *, force: bool) -> None:
    """Refuse a renewal that may break pods, or with `force` name them."""
    now = datetime.now(UTC)
    early = [(identity, until) for identity in identities if (until := free_at(identity)) is not None and now < until]
    if not early:
        return
    listed = "\n".join(
        f"  {identity.name}: {pods(identity)}, until {rfc3339.render(until)} at the latest" for identity, until in early
    )
    if not force:
        raise CommandError(message("rotate.too-soon", pods=listed))
    screen.console.print(f"These pods cannot sign in if they have not loaded the current certificate yet:\n{listed}")


def _listed_pods(identities: Iterable[Renewable]) -> str:
    return "\n".join(f"  {identity.name}: {pods(identity)}" for identity in identities)


_MOUNTS: Final = {row.field: row.mounts for row in CONTROL_PLANE}


def free_at(identity: Renewable) -> datetime | None:
    """When no pod needs the certificate any more that a renewal replaces; None if no pod has one yet."""
    if identity.secret is None:
        return None
    written = cast(CredentialSecretState, identity.secret.get("outputs", {}))
    delivered = Delivery.named(written.get("generation", ""), rfc3339.parse(written["deliveredAt"]))
    return None if delivered is None else spare_is_free(slots(identity), delivered)


def pods(identity: Renewable) -> str:
    """Container and Deployment of every consumer."""
    return ", ".join(f"{mount.container} in {mount.deployment}" for mount in _MOUNTS[identity.owner.identity])


def slots(identity: Renewable) -> Slots:
    """The certificates of an identity by its schedule."""
    written = cast(RenewalScheduleState, identity.schedule["inputs"])
    return Slots(written["current"], _slot(written.get("a")), _slot(written.get("b")))


def chosen(stack: str, candidates: Collection[Renewable], identities: Collection[str]) -> list[Renewable]:
    """The stack's candidates that `identities` names (`ingress`, or `hc1/ingress` for one cluster); all without any.

    Raises CommandError for a name without a certificate of this stack, and if no identity has one.
    """
    if not candidates:
        raise CommandError(f"the stack {stack} issues no certificate: there is nothing to rotate")
    names = {name for candidate in candidates for name in (candidate.name, candidate.owner.identity)}
    if unknown := sorted(set(identities) - names):
        listed = (f"{name} (did you mean {close}?)" if (close := similar(name, names)) else name for name in unknown)
        issued = ", ".join(candidate.name for candidate in candidates)
        raise CommandError(message("rotate.not-issued", stack=stack, names=", ".join(listed), issued=issued))
    return [
        candidate
        for candidate in candidates
        if not identities or {candidate.name, candidate.owner.identity} & set(identities)
    ]


def _slot(written: CertificateSlot | None) -> Slot | None:
    if written is None:
        return None
    return Slot(written["generation"], rfc3339.parse(written["notBefore"]), written["validDays"])
