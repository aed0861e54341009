"""`idstack status`: each identity's secret, certificate and renewal; locally also whether it signs in now."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.outputs import probes
from ops.outputs.rows import has_probes, rows
from ops.outputs.tables import credentials
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError


def status(stack: StackOption = DEFAULT_STACK, as_json: JsonOption = False) -> None:
    """Show each identity: secret, SecretProviderClass, expiry, renewal; locally also its sign-in and proof call."""
    show(stack, Screen(as_json))


def show(stack: str, screen: Screen) -> None:
    """Print the rows of a stack.

    Raises CommandError for a stack that does not exist, for an expired certificate and, locally, for a row that is not
    green.
    """
    engine = Engine(stack, output=screen.output)
    environment = local_cloud.of(stack)
    outputs = engine.outputs()
    try:
        answers = probes.read(Path(environment.kubeconfig)) if environment and has_probes(outputs) else None
    except probes.Unreachable as error:
        raise CommandError(f"{error}; `make up` starts the local cloud again") from None
    found, now = rows(outputs, answers), datetime.now(UTC)
    if screen.as_json:
        screen.document({"stack": stack, "rows": [row.to_json(now) for row in found]})
    else:
        screen.console.print(credentials(found, now, screen.console.width))
    failing = [
        row.identity
        for row in found
        if (row.not_after is not None and row.not_after <= now) or (answers is not None and not row.is_green)
    ]
    if failing:
        raise CommandError(f"these identities cannot sign in: {', '.join(failing)}")
