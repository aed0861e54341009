"""`idstack rotate`: renew certificates now, before their schedules would."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

import typer

from identity.credentials import renewal_request, rfc3339
from identity.credentials.renewal_request import RenewalRequest
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.commands.status import show
from ops.commands.up import start_local_cloud
from ops.outputs.rotation import Rotatable, chosen, rotatable
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

IdentityOption = Annotated[
    list[str] | None,
    typer.Option("--identity", "-i", help="Field of the identity, or <cluster>/<field>; repeatable. Default: all."),
]
ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Renew even while pods may still need what is replaced, and name them."),
]
RevokeOption = Annotated[
    bool, typer.Option("--revoke", help="After a leak: replace both certificates, the leaked current one last.")
]


def rotate(
    context: typer.Context,
    identity: IdentityOption = None,
    force: ForceOption = False,
    revoke: RevokeOption = False,
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
) -> None:
    """Renew certificates now. The old ones stay registered until the next renewal. Other options go to `pulumi up`."""
    screen = Screen(as_json)
    engine = Engine(stack, output=screen.output)
    if engine.is_local:
        start_local_cloud(screen)
        engine.prepare()
    identities = chosen(rotatable(engine.outputs(), engine.resources()), identity or ())
    if revoke:
        screen.console.print(_revocation(identities))
    else:
        _refuse_or_name_those_at_risk(identities, screen, force=force)
    _run(engine, identities, RenewalRequest.FORCE if force or revoke else RenewalRequest.RENEW, context.args)
    if revoke:
        _run(engine, identities, RenewalRequest.FRESH_SPARE, context.args)
    show(stack, screen)


def _run(engine: Engine, identities: Iterable[Rotatable], request: RenewalRequest, arguments: Iterable[str]) -> None:
    """One `pulumi up` of these identities alone, in which their schedules do what is requested."""
    requests = renewal_request.write({each.schedule: request for each in identities})
    targets = [argument for each in identities for urn in each.urns for argument in ("--target", urn)]
    engine.up([*targets, *arguments], requests)


def _refuse_or_name_those_at_risk(identities: Iterable[Rotatable], screen: Screen, *, force: bool) -> None:
    early = [each for each in identities if datetime.now(UTC) < each.free]
    if not early:
        return
    listed = "\n".join(
        f"  {each.name}: {', '.join(each.pods)}, until {rfc3339.render(each.free)} at the latest" for each in early
    )
    if not force:
        raise CommandError(
            "it is too soon: a renewal replaces the certificate before the current one, and these pods may still use "
            f"it:\n{listed}\nThey load the current one at the latest 6 hours after the CSI driver has polled. "
            "Wait until then, or restart those pods and use --force"
        )
    screen.console.print(f"These pods cannot sign in if they have not loaded the current certificate yet:\n{listed}")


def _revocation(identities: Iterable[Rotatable]) -> str:
    listed = "\n".join(f"  {each.name}: {', '.join(each.pods)}" for each in identities)
    return (
        "Both certificates are replaced: the spare first, which the secret then carries, at the end the leaked one.\n"
        "From then on nobody can sign in with the old key. Tokens issued before stay valid for up to 90 minutes.\n"
        "These pods cannot sign in until they load the new credential, at the latest 6 hours after the CSI driver "
        f"has polled; restart them to speed that up:\n{listed}"
    )
