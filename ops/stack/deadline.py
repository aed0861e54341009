"""The time limit of a command."""

from __future__ import annotations

import time
from dataclasses import dataclass

import typer

_SECONDS = 60.0


@dataclass(frozen=True)
class Deadline:
    """`ends` on the monotonic clock, in seconds, `minutes` after the command began."""

    minutes: float
    ends: float

    @classmethod
    def parse(cls, text: str) -> Deadline:
        """So many minutes from now on; raises BadParameter for anything but a positive number."""
        try:
            minutes = float(text)
        except ValueError:
            minutes = 0.0
        if not 0 < minutes < float("inf"):
            raise typer.BadParameter(f'found "{text}"; accepted: minutes, a number greater than 0 such as 40')
        return cls(minutes, time.monotonic() + minutes * _SECONDS)

    @property
    def left(self) -> float:
        """The remaining seconds, 0 once it has passed."""
        return max(0.0, self.ends - time.monotonic())

    def __str__(self) -> str:
        return f"the time limit of {self.minutes:g} minutes"
