"""`idstack init`: the file of a new stack on Azure, the stack in its backend, and the remaining steps."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Final

import typer

from ops.commands.options import Screen
from ops.first_stack.template import (
    SIGN_IN,
    Answers,
    Question,
    Side,
    answered,
    has_own_file,
    left_to_do,
    record_backend,
    secrets_provider_in,
    settings_in,
    signed_in,
    write_stack_file,
)
from ops.stack.engine import Engine
from ops.stack.environment import LOCAL_STACK, is_local
from ops.stack.errors import CommandError, message
from ops.stack.plugins import confirmed_plugins, listed_plugins, unpinned_plugins
from ops.stack.stack_document import BACKEND_VARIABLE, passphrase_fault
from tools import pin as pins

# Also the form of a vault's name (`Answers.vault`).
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KEY: Final = re.compile(r"(azurekeyvault|awskms|gcpkms|hashivault)://\S+")
_PASSPHRASE: Final = "passphrase"


def init(
    stack: Annotated[str, typer.Argument(help="Name of the new stack.")],
    prefix: Annotated[str | None, typer.Option(help="Prefix of the names in Azure.")] = None,
    location: Annotated[str | None, typer.Option(help="Azure's region.")] = None,
    side: Annotated[Side | None, typer.Option(help="What creates the pods on the management cluster.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Name of the hosted cluster.")] = None,
    management_cluster: Annotated[
        str | None, typer.Option(metavar="GROUP/NAME", help="The existing AKS cluster.")
    ] = None,
    dns_zone: Annotated[str | None, typer.Option(metavar="ID", help="The existing public DNS zone.")] = None,
    image: Annotated[str | None, typer.Option(help="With --side stack: the image of the credential probe.")] = None,
    backend: Annotated[
        str | None, typer.Option(metavar="URL", envvar=BACKEND_VARIABLE, help="The backend of the state.")
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--secrets-provider",
            metavar="KEY",
            help="Key of the state's secrets: azurekeyvault://..., awskms://..., or passphrase, the default.",
        ),
    ] = None,
    pin: Annotated[
        bool | None, typer.Option("--pin/--no-pin", help="Write missing checksums of plugins, as `make pin` does.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not prompt: a missing option is an error.")] = False,
) -> None:
    """Write the file of a new stack on Azure, create the stack, and print the steps before its first preview.

    Tenant and subscription are those of the login. A terminal prompts for missing options. An existing file stays as
    it is; an interrupted run continues.
    """
    if is_local(stack):
        raise CommandError(message("init.local" if stack == LOCAL_STACK else "init.local-name", stack=stack))
    if not _NAME.fullmatch(stack):
        raise CommandError(message("init.name", stack=stack))
    asks = not yes and sys.stdin.isatty()
    screen, engine = Screen(as_json=False), Engine(stack)
    file = engine.file
    key = _key(stack, provider, secrets_provider_in(file))
    options = {
        "prefix": prefix,
        "location": location,
        "side": side.value if side else None,
        "cluster": cluster,
        "management_cluster": management_cluster,
        "dns_zone": dns_zone,
        "image": image,
    }
    is_written = False
    if not has_own_file(file) or any(options.values()):
        login = signed_in(os.environ)
        unknown = [] if login else [f"the tenant and the subscription are unknown: {SIGN_IN}"]
        values = answered({**options, "backend": backend}, unknown, _ask if asks else None)
        assert login is not None, "it is among what is missing"
        answers = Answers(
            stack=stack,
            **vars(login),
            secrets_provider=key,
            side=Side(values.pop("side")),
            **values,
        )
        is_written = write_stack_file(file, answers)
    elif backend is not None and record_backend(file, backend):
        screen.console.print(f"{file.name}: the backend is recorded")
    settings = settings_in(engine)
    screen.console.print(f"{file.name}: {'written' if is_written else 'left as it is'}")
    engine.create()
    screen.console.print(f"stack {stack}: registered in {engine.backend()}")
    _pin(engine, screen, pin, asks=asks)
    for line in left_to_do(settings, stack):
        screen.console.print(line)


def _key(stack: str, option: str | None, recorded: str | None) -> str | None:
    """The key that encrypts the state's secrets; None for a passphrase, which must be one.

    `option` is that of the command line, `recorded` that in the stack's file.
    """
    if option is not None and recorded not in (None, option):
        raise CommandError(message("init.another-key", option=option, recorded=recorded, stack=stack))
    key = option or recorded or _PASSPHRASE
    if key != _PASSPHRASE:
        if not _KEY.fullmatch(key):
            raise CommandError(message("init.no-key", key=key))
        return key
    if fault := passphrase_fault(os.environ):
        raise CommandError(message("init.no-passphrase", fault=fault, stack=stack))
    return None


def _ask(question: Question) -> str:
    while True:
        answer: str = typer.prompt(question.asks, default=question.default, err=True)
        problem = question.problem(answer.strip())
        if problem is None:
            return answer.strip()
        typer.echo(problem, err=True)


def _pin(engine: Engine, screen: Screen, is_requested: bool | None, *, asks: bool) -> None:
    """Pin the plugins that are neither installed nor pinned, if the user agrees; otherwise name the command."""
    missing = unpinned_plugins(engine.environment)
    if not missing:
        return
    if is_requested is None and asks:
        is_requested = confirmed_plugins(missing)
    if is_requested:
        if pins.main() != 0:
            raise CommandError(message("init.not-pinned", stack=engine.stack))
        return
    screen.console.print(message("init.to-pin", plugins=listed_plugins(missing)))
