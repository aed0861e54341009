"""`idstack import`: take something that exists into a stack's state; a failed `up` prints the whole line."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.commands.options import DEFAULT_STACK, Screen, StackOption
from ops.commands.up import start_local_cloud
from ops.stack.engine import Engine

TypeArgument = Annotated[
    str, typer.Argument(metavar="TYPE", help="Its type, azure-native:keyvault:Vault for instance.")
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name in the program, as previews show it.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The provider's id of it.")]


def import_(
    context: typer.Context,
    type_token: TypeArgument,
    name: NameArgument,
    id: IdArgument,
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Adopt something that exists. More options (--parent, --provider) go to `pulumi import`."""
    engine = Engine(stack)
    if engine.is_local:
        start_local_cloud(Screen(as_json=False))
        engine.prepare()
    engine.import_(type_token, name, id, context.args)
