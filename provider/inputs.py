"""The checks of a resource's inputs."""

from __future__ import annotations

from datetime import datetime, timedelta

from identity.credentials import rfc3339
from plugin import UNKNOWN, CheckFailure, Props, Value


class Inputs:
    """Reads the plain inputs of Check and collects what is wrong with them; an unknown value is not wrong."""

    def __init__(self, properties: Props) -> None:
        self._properties = properties
        self.failures: list[CheckFailure] = []

    def integer(self, name: str, *, least: int) -> int | None:
        """The integer called `name`; None if it is unknown or refused."""
        value = self._properties.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.refuse(name, f"an integer, {least} at least")
        return None

    def days(self, name: str, *, least: int, since: datetime) -> int | None:
        """The number of days called `name`, which end before the calendar does; None if it is unknown or refused."""
        days = self.integer(name, least=least)
        if days is None:
            return None
        try:
            since + timedelta(days=days)
        except OverflowError:
            self.refuse(name, f"days after {rfc3339.render(since)} that end before the year 10000")
            return None
        return days

    def string(self, name: str) -> str | None:
        """The string called `name`, which is not empty; None if it is unknown or refused."""
        value = self._properties.get(name)
        if isinstance(value, str) and value:
            return value
        self.refuse(name, "a string that is not empty")
        return None

    def integers(self, name: str, *, least: int) -> list[int]:
        """The list of integers called `name`; empty if it is unknown or refused."""
        value = self._properties.get(name)
        if isinstance(value, list):
            found = [each for each in value if isinstance(each, int) and not isinstance(each, bool) and each >= least]
            if len(found) == len(value):
                return found
        self.refuse(name, f"a list of integers, {least} at least")
        return []

    def boolean(self, name: str) -> None:
        """Refuse what is neither true nor false."""
        if not isinstance(self._properties.get(name), bool):
            self.refuse(name, "true or false")

    def strings(self, name: str) -> None:
        """Refuse what is not a list of strings."""
        value = self._properties.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            self.refuse(name, "a list of strings that are not empty")

    def refuse(self, name: str, accepted: str) -> None:
        """Note that the value called `name` is wrong, unless it is not known yet."""
        value = self._properties.get(name)
        if value is not UNKNOWN:
            self.failures.append(CheckFailure(name, f"found {_found(value)}; accepted: {accepted}"))


def _found(value: Value) -> str:
    """What a refusal shows of a value: never a string, nor what holds one, for some inputs are secret."""
    match value:
        case None:
            return "nothing"
        case bool() | int() | float():
            return repr(value)
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"
