"""The rule of a type of the configuration, with its message and its fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

PLACEHOLDER: Final = "the placeholder of the example, still to be filled in"
REFUSED: Final = "refused"
CREDENTIAL: Final = "credential"
"""The type of the error for a value that must not be shown."""
ZERO_UUID: Final = "00000000-0000-0000-0000-000000000000"


def refused(reason: str) -> PydanticCustomError:
    """The error that a validator raises; an empty reason leaves it to `accepted`."""
    return PydanticCustomError(REFUSED, "{reason}", {"reason": reason})


@dataclass(frozen=True, kw_only=True)
class ValueSpec:
    """The form of a value, as metadata of an annotated type.

    `rule` is its id in `Problem`. `accepted` completes "accepted: ..."; `blank` is the placeholder in the fixing
    command, which `hint` follows. `check` returns the normalized value; it raises ValueError with a reason, empty if
    `accepted` is enough.
    """

    rule: str
    accepted: str
    blank: str
    check: Callable[[Any], Any]
    hint: str = ""
    # A guess at what was meant, offered if it passes `check`.
    guess: Callable[[str], str] | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._validated, handler(source))

    def _validated(self, value: Any) -> Any:
        try:
            return self.check(value)
        except PydanticCustomError:
            raise
        except ValueError as error:
            raise refused(str(error)) from None

    def guessed(self, text: object) -> str | None:
        """The value that was probably meant, if there is one."""
        if self.guess is None or not isinstance(text, str):
            return None
        candidate = self.guess(text)
        try:
            self.check(candidate)
        except ValueError:
            return None
        return candidate


def matching(pattern: str) -> Callable[[str], str]:
    """A check that the whole string matches."""
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError
        return text

    return check


def without_credentials(pattern: str) -> Callable[[str], str]:
    """A check that refuses a key or a signature in an address, and a text that does not match the whole pattern."""
    matches = matching(pattern)

    def check(text: str) -> str:
        if "@" in text or "sig=" in text:
            raise PydanticCustomError(CREDENTIAL, "{reason}", {"reason": "it seems to have a credential in it"})
        return matches(text)

    return check


def integer(low: int, high: int, unit: str) -> ValueSpec:
    """The form of an integer from `low` to `high`."""

    def check(number: int) -> int:
        if not low <= number <= high:
            raise ValueError
        return number

    return ValueSpec(
        rule="integer",
        accepted=f"an integer, {low} to {high} {unit}, without quotes",
        blank=f"<{low}-{high}>",
        check=check,
    )


def ascending(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Check that each number is larger than the one before it."""
    if list(numbers) != sorted(set(numbers)):
        raise ValueError("they are not in ascending order, each once")
    return numbers


def uuid(text: str) -> str:
    """Check a UUID and return it in lower case, as Azure answers: a second spelling would show as a change."""
    matching(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")(text)
    if text == ZERO_UUID:
        raise ValueError(PLACEHOLDER)
    return text.lower()
