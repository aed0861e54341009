"""The time by which certificates are issued and renewed."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Final

from identity.credentials import rfc3339
from plugin import PluginError

# RFC 3339; stops the clock at that moment, for tests of renewals.
CLOCK_VARIABLE: Final = "IDSTACK_CLOCK"


def now() -> datetime:
    """The time in UTC; raises `PluginError` if `IDSTACK_CLOCK` is set to something else than a timestamp."""
    fixed = os.environ.get(CLOCK_VARIABLE)
    if not fixed:
        return datetime.now(UTC)
    try:
        return rfc3339.parse(fixed)
    except ValueError:
        raise PluginError(
            f'{CLOCK_VARIABLE}: found "{fixed}"; accepted: RFC 3339 such as {rfc3339.EXAMPLE}; correct or unset it'
        ) from None
