"""The probe in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

PROBE = (sys.executable, "-m", "identity.credentials.probe")
ROOT = Path(__file__).parents[4]
PATIENCE = 120  # seconds until a missing event is a failure; no test waits for it otherwise


class ProbeProcess:
    """The probe as a pod runs it."""

    def __init__(self, *arguments: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [*PROBE, *arguments, "--listen", "127.0.0.1:0"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self.url = f"http://{self.until('listening')['address']}"

    def until(self, message: str) -> dict[str, Any]:
        """The next log line whose message matches."""
        for line in self.stderr:
            self.lines.append(json.loads(line))
            if re.fullmatch(message, self.lines[-1]["message"], re.DOTALL):
                return self.lines[-1]
        raise AssertionError(f"ended without {message!r}: {self.lines}")

    @property
    def stderr(self) -> IO[str]:
        assert self.process.stderr is not None
        return self.process.stderr

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def samples(self) -> dict[str, float]:
        """What `/metrics` shows, by name with labels."""
        _, metrics = self.get("/metrics")
        pairs = (line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}


@contextmanager
def probing(*arguments: str, environment: dict[str, str]) -> Iterator[ProbeProcess]:
    """The probe, killed at the end of the block if it still runs."""
    started = ProbeProcess(*arguments, environment=environment)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        started.stderr.close()
