"""The loader of the control plane's own pods, github.com/Azure/msi-dataplane, in processes of the tests."""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tools import golang
from tools.steps import ROOT

_MODULE: Final = ROOT / "tests/e2e/msi-dataplane"


@dataclass(frozen=True)
class Verdict:
    """With whom and with what a loaded credential signs in; or `error`, the loader's reason or its panic.

    `chain` holds the thumbprints (SHA-1, upper-case hexadecimal) of the certificates it sends, the signer's first.
    """

    authority: str = ""
    tenant: str = ""
    client_id: str = ""
    chain: tuple[str, ...] = ()
    error: str = ""
    panic: bool = False


@dataclass(frozen=True)
class SignIn:
    """One sign-in: with which certificate, or `error`."""

    time: str
    thumbprint: str = ""
    error: str = ""


class _Process:
    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [golang.build(_MODULE), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The process ends by itself when its standard input is closed."""
        self._process.communicate()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line: dict[str, Any] = json.loads(self._process.stdout.readline() or "{}")
        assert line, f"msi-dataplane ended with {self._process.wait()}"
        return line


class Loader(_Process):
    """Loads documents, one after the other."""

    def __init__(self) -> None:
        super().__init__("load")

    def load(self, document: bytes) -> Verdict:
        """Have the loader load this file and sign in at an Entra ID that grants everything."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{base64.b64encode(document).decode()}\n")
        self._process.stdin.flush()
        line = self._line()
        return Verdict(**line | {"chain": tuple(line.get("chain", ()))})


class SigningIn(_Process):
    """Signs in with a mounted credential again and again, past every cache, with a `pause` in between.

    `backstop`: how often the loader reads the file again, the only way in which it sees a swap of the CSI driver's
    link. Both durations are in Go's notation.
    """

    def __init__(self, file: Path, ca_file: str, *, backstop: str = "6h", pause: str = "20ms") -> None:
        super().__init__("sign-in", "-ca", ca_file, "-backstop", backstop, "-pause", pause, str(file))

    def next(self) -> SignIn:
        """The next sign-in, once it is over."""
        return SignIn(**self._line())
