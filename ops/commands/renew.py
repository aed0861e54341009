"""`idstack renew`: renew the certificates that are due, whatever else waits in the configuration or the program."""

from __future__ import annotations

from typing import Final

import typer

from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.commands.status import show
from ops.commands.up import start_local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

# The types of all resources that a renewal touches.
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
    """Renew the certificates that are due, and change nothing else. Other options go to `pulumi up`."""
    screen = Screen(as_json)
    engine = Engine(stack, output=screen.output)
    if engine.is_local:
        start_local_cloud(screen)
        engine.prepare()
    # By their names and not by a pattern, which would also match identities that no `up` has created yet.
    urns = dict.fromkeys(each["urn"] for each in engine.resources() if each["type"] in _RENEWED)
    if not urns:
        raise CommandError(
            f"the stack {stack} has no certificate to renew: `make up STACK={stack}` issues the first ones"
        )
    engine.up([*(argument for urn in urns for argument in ("--target", urn)), *context.args])
    show(stack, screen)
