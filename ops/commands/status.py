"""`idstack status`: each identity's secret, certificate and renewal, and locally whether it signs in right now."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ops import local_cloud, probes
from ops.engine import Engine
from ops.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.rows import has_probes, rows
from ops.tables import credentials
from ops.trouble import Trouble


def status(stack: StackOption = DEFAULT_STACK, as_json: JsonOption = False) -> None:
    """Show each identity: secret, SecretProviderClass, expiry, renewal; locally its sign-in and proof call, too."""
    show(stack, Screen(as_json))


def show(stack: str, screen: Screen) -> None:
    """Print the rows; raises Trouble for an expired certificate or, locally, for a row that is not green."""
    engine = Engine(stack, output=screen.output)
    environment = local_cloud.of(stack)
    outputs = engine.outputs()
    try:
        answers = probes.read(Path(environment.kubeconfig)) if environment and has_probes(outputs) else None
    except probes.Unreachable as error:
        raise Trouble(f"{error}; `make up` starts the local cloud again") from None
    found, now = rows(outputs, answers), datetime.now(UTC)
    if screen.as_json:
        screen.document({"stack": stack, "rows": [row.to_json(now) for row in found]})
    else:
        screen.console.print(credentials(found, now, screen.console.width))
    troubled = [
        row.identity
        for row in found
        if (row.not_after is not None and row.not_after <= now) or (answers is not None and not row.is_green)
    ]
    if troubled:
        raise Trouble(f"these identities can not sign in: {', '.join(troubled)}")
