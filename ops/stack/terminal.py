"""The terminal of a command that `idstack` runs: one of its own, which this process connects with the person's."""

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
from typing import Any, Final

_STANDARD_INPUT: Final = 0
_CTRL_C: Final = b"\x03"
_PIECE: Final = 1 << 16
# Of what termios.tcgetattr returns.
_INPUT, _LOCAL, _KEYS = 0, 3, 6


class Terminal:
    """A terminal for one command, so that Ctrl-C reaches this process alone.

    The engine's display, and its prompts, read Ctrl-C as a key: in a person's own terminal this process would not know
    of it, and a second one would make the engine leave its lock.
    """

    def __init__(self) -> None:
        self._ours, self.side = pty.openpty()
        self._resize()

    @classmethod
    @contextmanager
    def of_person(cls, output: int) -> Iterator[Terminal | None]:
        """The terminal of a command that prints to `output`, whose end is `side`; None if no person can type.

        In the block the person's terminal passes every key on at once, but for Ctrl-C.
        """
        if not os.isatty(_STANDARD_INPUT):
            yield None
            return
        terminal, before = cls(), termios.tcgetattr(_STANDARD_INPUT)
        flags = termios.tcgetattr(_STANDARD_INPUT)
        flags[_INPUT] &= ~termios.ICRNL
        flags[_LOCAL] &= ~(termios.ECHO | termios.ICANON)
        for key in (termios.VQUIT, termios.VSUSP):
            flags[_KEYS][key] = b"\0"
        ended, end = os.pipe()
        shown = output if os.isatty(output) else _STANDARD_INPUT
        relay = threading.Thread(target=terminal._relay, args=(shown, ended), daemon=True)
        relay.start()
        try:
            termios.tcsetattr(_STANDARD_INPUT, termios.TCSADRAIN, flags)
            yield terminal
        finally:
            os.close(terminal.side)
            os.close(end)
            relay.join()
            termios.tcsetattr(_STANDARD_INPUT, termios.TCSADRAIN, before)
            os.close(ended)
            os.close(terminal._ours)

    def interrupt(self, process: subprocess.Popen[Any]) -> None:
        """Do what Ctrl-C does in the command's terminal: a key for who reads keys, else a signal."""
        if termios.tcgetattr(self._ours)[_LOCAL] & termios.ISIG:
            process.send_signal(signal.SIGINT)
        else:
            os.write(self._ours, _CTRL_C)

    def _relay(self, shown: int, ended: int) -> None:
        """Copy between the terminals until `ended` is closed at its other end, and everything is shown."""
        sources = {_STANDARD_INPUT, self._ours, ended}
        while True:
            ready = select.select(sources, [], [])[0]
            self._resize()
            if _STANDARD_INPUT in ready and not _copy(_STANDARD_INPUT, self._ours):
                sources.discard(_STANDARD_INPUT)
            if self._ours in ready:
                if not _copy(self._ours, shown):
                    sources.discard(self._ours)
            elif ended in ready:
                return

    def _resize(self) -> None:
        with suppress(termios.error):
            termios.tcsetwinsize(self._ours, termios.tcgetwinsize(_STANDARD_INPUT))


def _copy(source: int, target: int) -> bool:
    """Copy what is there; returns False at the end."""
    try:
        piece = os.read(source, _PIECE)
        while written := piece and os.write(target, piece):
            piece = piece[written:]
    except OSError:
        return False
    return True
