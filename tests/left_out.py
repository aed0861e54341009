"""What a run leaves out by the marks of tests: one line at its end, how many tests and which command runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

_COMMANDS: Final = {
    "storm": "make storm",
    "real": "make real",
    "browser": "make browser",
    "clients": "make clients",
    "apiserver": "make e2e",
    "nightly": "make nightly",
    "slow": "make slow",
}
_UNMARKED: Final = "make test"
_KEY: Final = "left_out"


class LeftOut:
    """A plugin of pytest: counts deselected tests in each worker, which all collect the same, and prints the counts."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count them by the command that runs them."""
        self._counts.update(map(_command, items))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Of a worker: hand the counts to the process that prints."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_KEY] = dict(self._counts)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the counts of a worker."""
        self._counts = Counter(getattr(node, "workeroutput", {}).get(_KEY, self._counts))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the line."""
        if self._counts:
            terminalreporter.write_line(f"left out: {', '.join(_told(self._counts))}")


def _command(item: pytest.Item) -> str:
    return next((command for mark, command in _COMMANDS.items() if item.get_closest_marker(mark)), _UNMARKED)


def _told(counts: Counter[str]) -> Iterator[str]:
    for command, count in counts.most_common():
        yield f"{count} {'test' if count == 1 else 'tests'} of `{command}`"
