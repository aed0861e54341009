"""`idstack renew`: what a scheduled run does, whatever else waits in the configuration or the program."""

from __future__ import annotations

from typing import Final

import typer

from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.commands.status import show
from ops.commands.up import start_local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

# Everything that a renewal touches.
_RENEWED: Final = frozenset(
    {
        "idstack:index:RenewalSchedule",
        "idstack:index:Certificate",
        "azuread:index/applicationCertificate:ApplicationCertificate",
        "idstack:index:SignInGate",
        "azure-native:keyvault:Secret",
    }
)


def renew(context: typer.Context, stack: StackOption = DEFAULT_STACK, as_json: JsonOption = False) -> None:
    """Renew the certificates that are due, and change nothing else. More options go to `pulumi up`."""
    screen = Screen(as_json)
    engine = Engine(stack, output=screen.output)
    if engine.is_local:
        start_local_cloud(screen)
        engine.prepare()
    # By their names, not by a pattern: a pattern would match identities, too, that no `up` has made yet.
    urns = dict.fromkeys(each["urn"] for each in engine.resources() if each["type"] in _RENEWED)
    if not urns:
        raise CommandError(
            f"the stack {stack} has no certificate to renew: `make up STACK={stack}` issues the first ones"
        )
    engine.up([*(argument for urn in urns for argument in ("--target", urn)), *context.args])
    show(stack, screen)
