"""`idstack import`: adopt something that exists into a stack's state; a failed `up` prints the whole command."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.commands.options import DEFAULT_STACK, Screen, StackOption
from ops.commands.up import start_local_cloud
from ops.stack.engine import Engine

TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="Type token, such as azure-native:keyvault:Vault.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name in the program, as a preview shows it.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the thing, as its provider writes it.")]


def import_(
    context: typer.Context,
    type_token: TypeArgument,
    name: NameArgument,
    id: IdArgument,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Adopt something that exists into the stack. Other options (--parent, --provider) go to `pulumi import`."""
    engine = Engine(stack)
    if engine.is_local:
        start_local_cloud(Screen(as_json=False))
        engine.prepare()
    engine.import_(type_token, name, id, context.args)
