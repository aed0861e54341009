"""Shared by the set-up steps: paths, messages, hashes, and commands with a progress line."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
# Of pip and uv: what has no hash in the lock is refused, and so is a package that runs code to be installed.
WHEELS_ALONE = ("--require-hashes", "--only-binary", ":all:")
# Of pip's variables, the caller's that count: those that say how it reaches an index.
_REACHING = frozenset(
    f"PIP_{name}"
    for name in (
        *("CACHE_DIR", "CERT", "CLIENT_CERT", "CONFIG_FILE", "DEFAULT_TIMEOUT", "EXTRA_INDEX_URL", "FIND_LINKS"),
        *("INDEX_URL", "KEYRING_PROVIDER", "NO_INDEX", "PROXY", "RETRIES", "TIMEOUT", "TRUSTED_HOST"),
    )
)
_TAIL_LINES = 15
_REPORT_EVERY_SECONDS = 20.0


class SetupError(Exception):
    """A step cannot succeed; the message names the ways out."""


class ProcessError(Exception):
    """A command failed; the message is the end of what it printed."""


def report(message: str) -> None:
    """Print one line of progress."""
    print(f"setup: {message}", flush=True)


def fingerprint(parts: Iterable[Path | str]) -> str:
    """Hash of file contents and strings, 16 hex digits; each part counts with its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `target` when the block ends without an exception."""
    draft = target.with_name(f"{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    yield draft
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)


def run(
    command: Sequence[object],
    *,
    directory: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[int], str] | None = None,
) -> str:
    """Run a command and return what it printed; raises ProcessError if it fails, OSError if it cannot be started.

    `progress` makes a progress line out of the number of lines printed so far, which is printed every twenty seconds.
    A terminal has it in place, and at each line.
    """
    lines: list[str] = []
    begun, ended = time.monotonic(), threading.Event()

    def tell() -> None:
        text = f"  {progress(len(lines)) if progress else Path(str(command[0])).name}, {time.monotonic() - begun:.0f} s"
        if sys.stdout.isatty():
            print(f"\r\033[Ksetup: {text}", end="", flush=True)
        else:
            report(text)

    def tell_in_silence() -> None:
        while not ended.wait(_REPORT_EVERY_SECONDS):
            tell()

    teller = threading.Thread(target=tell_in_silence, daemon=True)
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        teller.start()
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if progress and sys.stdout.isatty():
                tell()
    ended.set()
    teller.join()
    if sys.stdout.isatty():
        print("\r\033[K", end="", flush=True)
    if process.returncode != 0:
        raise ProcessError("\n".join(deque(lines, _TAIL_LINES)) or f"exit code {process.returncode}")
    return "\n".join(lines)


def pip_install(python: object, *arguments: object, progress: Callable[[int], str] | None = None) -> None:
    """Install with an interpreter's pip; how pip reaches its index, the caller's environment says. Raises as `run`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_") or name in _REACHING}
    kept["PIP_USER"] = "0"  # more than `user` in a pip.conf
    pip = [python, "-m", "pip", "install", *WHEELS_ALONE, "--disable-pip-version-check", *arguments]
    run(pip, environment=kept, progress=progress)
