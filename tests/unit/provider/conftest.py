"""A clock that the tests set."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from identity.credentials import rfc3339

SetClock = Callable[[datetime], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Stops the clock of schedules at a moment."""
    return lambda moment: monkeypatch.setenv("IDSTACK_CLOCK", rfc3339.render(moment))
