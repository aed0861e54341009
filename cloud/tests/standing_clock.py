"""A clock of the local cloud that stands, for tests of what a request or a wait does and not the time in between."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from azure.core.pipeline.transport import RequestsTransport

from localcloud.core import clock


class StandingClock:
    """The local cloud's clock, which goes on when it is told to."""

    def __init__(self) -> None:
        self.instant = clock.now()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.instant += timedelta(seconds=seconds)

    def pauses(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """The pauses that Azure's clients make from now on, each of which lets time pass."""
        made: list[float] = []

        def sleep(_: object, seconds: float) -> None:
            made.append(seconds)
            self.advance(seconds)

        monkeypatch.setattr(RequestsTransport, "sleep", sleep)
        return made


@pytest.fixture
def standing() -> Iterator[StandingClock]:
    """The clock, standing until the test's end."""
    found = StandingClock()

    class Standing(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return found.instant

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "datetime", Standing)
        yield found
