"""The terminal of a command that `idstack` runs: one of its own, which this process connects with the person's.

The engine's display and its prompts read Ctrl-C as a key. In the person's terminal this process would not know of it,
and a second one would make the engine leave its lock.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

_STANDARD_INPUT: Final = 0
# Of what termios.tcgetattr returns.
_INPUT, _LOCAL, _KEYS = 0, 3, 6


@dataclass(frozen=True)
class Terminal:
    """What a command has as standard input (None: as this process) and output; `keys`, if any, is the other side."""

    input: int | None
    output: int
    keys: int | None = None

    def send(self, process: subprocess.Popen[Any], number: signal.Signals) -> None:
        """Send a signal; who reads keys gets Ctrl-C as one, which ends a prompt without a lock."""
        if number == signal.SIGINT and self.keys and not termios.tcgetattr(self.keys)[_LOCAL] & termios.ISIG:
            os.write(self.keys, b"\x03")
        else:
            process.send_signal(number)


@contextmanager
def terminal_for(output: int) -> Iterator[Terminal]:
    """The terminal of a command that prints to `output`; without a person there, `output` itself.

    In the block the person's terminal passes every key on at once, but for Ctrl-C.
    """
    if not os.isatty(_STANDARD_INPUT) or not os.isatty(output):
        # In the background it would be stopped when it reads; behind a pipe, the keys are another program's.
        yield Terminal(subprocess.DEVNULL if os.isatty(_STANDARD_INPUT) else None, output)
        return
    keys, side = pty.openpty()
    ended, end = os.pipe()
    before, flags = (termios.tcgetattr(_STANDARD_INPUT) for _ in range(2))
    flags[_INPUT] &= ~termios.ICRNL
    flags[_LOCAL] &= ~(termios.ECHO | termios.ICANON)
    flags[_KEYS][termios.VQUIT] = flags[_KEYS][termios.VSUSP] = b"\0"
    _resize(keys)
    relay = threading.Thread(target=_relay, args=(keys, output, ended), daemon=True)
    relay.start()
    try:
        termios.tcsetattr(_STANDARD_INPUT, termios.TCSADRAIN, flags)
        yield Terminal(side, side, keys)
    finally:
        os.close(side)
        os.close(end)
        relay.join()
        termios.tcsetattr(_STANDARD_INPUT, termios.TCSADRAIN, before)
        os.close(ended)
        os.close(keys)


def _relay(keys: int, output: int, ended: int) -> None:
    """Copy between the terminals until `ended` is closed at its other end, and everything is shown."""
    sources = {_STANDARD_INPUT: keys, keys: output, ended: ended}
    while True:
        ready = select.select(sources, [], [])[0]
        _resize(keys)
        for source in ready:
            if source != ended and not _copy(source, sources[source]):
                del sources[source]
        if ready == [ended]:
            return


def _resize(keys: int) -> None:
    with suppress(termios.error):
        termios.tcsetwinsize(keys, termios.tcgetwinsize(_STANDARD_INPUT))


def _copy(source: int, target: int) -> bool:
    """Copy what is there; returns False at the end."""
    with suppress(OSError):
        piece = os.read(source, 1 << 16)
        left = piece
        while left:
            left = left[os.write(target, left) :]
        return bool(piece)
    return False
