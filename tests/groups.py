"""Groups of tests: those that share a stack, or else a file. A group runs on one worker, and its stack ends with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final, TypeVar

import pytest

T = TypeVar("T")

_TESTS: Final = Path(__file__).parent
# Fixtures that are made once for all tests that use them.
_SHARED: Final = ("small", "stack", "local_cloud")
_ENDS: Final[dict[str, ExitStack]] = {}


def group_of(item: pytest.Item) -> str:
    """The group of a test: the fixture that it shares with other files, or else its file."""
    assert isinstance(item, pytest.Function)
    definitions = item._fixtureinfo.name2fixturedefs
    shared = (name for name in _SHARED if name in definitions and definitions[name][-1].scope == "session")
    return next(shared, str(item.path.relative_to(_TESTS)))


@contextmanager
def shared(made: AbstractContextManager[T], group: str) -> Iterator[T]:
    """Enter `made` until the end of the group; the session, whose fixture it is, may go on for long."""
    with _ENDS.setdefault(group, ExitStack()) as ends:
        yield ends.enter_context(made)


def end_group(group: str) -> None:
    """End what the tests of a group share."""
    _ENDS.pop(group, ExitStack()).close()
