"""`idstack down`: the stack and, locally, everything it stood on."""

from __future__ import annotations

import typer

from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.commands.up import start_local_cloud
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import local_paths


def down(context: typer.Context, stack: StackOption = DEFAULT_STACK, as_json: JsonOption = False) -> None:
    """Destroy a stack; with the last local one ends the local cloud. More options go to `pulumi destroy`."""
    screen = Screen(as_json)
    engine = Engine(stack, output=screen.output)
    if not engine.is_local:
        engine.destroy(context.args)
    others = _remove_local(engine, screen, context.args) if engine.is_local and local_paths().state.exists() else []
    if as_json:
        screen.document({"stack": stack, "removed": engine.is_local})
    elif others:
        screen.console.print(f"the local cloud stays: it still has {', '.join(others)}")
    elif engine.is_local:
        screen.console.print("nothing of the local stack is left")


def _remove_local(engine: Engine, screen: Screen, arguments: list[str]) -> list[str]:
    """Remove the stack, and the local cloud unless other stacks live there, which are returned."""
    start_local_cloud(screen)
    screen.step("pulumi destroy")
    engine.prepare()
    engine.destroy(arguments)
    engine.remove()
    if others := engine.siblings():
        return others
    screen.step("local cloud")
    local_cloud.do("stop", "--remove", output=screen.output)
    return []
