"""Chromium, as the tests drive it: each method is a command to `driver/driver.mjs`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Scheme: TypeAlias = Literal["light", "dark"]


class BrowserError(Exception):
    """The browser could not do what it was told; the message is its own."""


@dataclass(frozen=True)
class Browser:
    """A browser with one page at a time. Every method raises BrowserError if the page does not allow it."""

    process: subprocess.Popen[str]

    def open(self, file: Path, scheme: Scheme = "light", *, width: int = 1600, height: int = 1000) -> None:
        """Open a file in a new page."""
        self._do("open", url=file.as_uri(), scheme=scheme, width=width, height=height)

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page, as JSON has it."""
        return self._do("evaluate", script=script)

    def press(self, *keys: str) -> None:
        """Press keys one after the other (`Tab`, `ArrowDown`, `a`)."""
        for key in keys:
            self._do("press", key=key)

    def click(self, selector: str) -> None:
        """Click the first element of a CSS selector."""
        self._do("click", selector=selector)

    def fill(self, selector: str, text: str) -> None:
        """Type a text into a field."""
        self._do("fill", selector=selector, text=text)

    def select(self, selector: str, value: str) -> None:
        """Choose an option."""
        self._do("select", selector=selector, value=value)

    def prefer(self, scheme: Scheme) -> None:
        """Change the system's scheme."""
        self._do("scheme", scheme=scheme)

    def seen(self) -> list[str]:
        """Console messages, errors, dialogs, and requests other than for the file itself, since it was opened."""
        found: list[str] = self._do("seen")
        return found

    def _do(self, command: str, **given: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"command": command, **given}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "the browser has ended"}')
        if "error" in answer:
            raise BrowserError(answer["error"])
        return answer["result"]


@contextmanager
def running(folder: Path) -> Iterator[Browser]:
    """The browser out of its folder (`tools.clients.browser`); it ends with the block."""
    command = ["node", "driver.mjs"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Browser(process)
        assert process.stdin is not None
        process.stdin.close()
