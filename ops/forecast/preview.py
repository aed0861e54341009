"""The warning of a preview whose stack is near a limit."""

from __future__ import annotations

from ops.forecast import screen
from ops.forecast.forecast import forecast
from ops.forecast.stack import read
from ops.stack.errors import CommandError


def near_limits(stack: str) -> str | None:
    """One paragraph if the stack alone is near a limit, None otherwise.

    What cannot be read (an encrypted value, a key that only `--config` gives) is no finding: the engine has judged it.
    """
    try:
        return screen.warning(forecast(read([stack])), stack)
    except CommandError:
        return None
