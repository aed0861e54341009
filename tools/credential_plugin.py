"""kubelogin, Azure's own credential plugin: built from its pinned Go module, for workflows and tests."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import Final

from tools import golang, pinned
from tools.pinned import dotted
from tools.steps import ROOT, TOOLS, ProcessError, SetupError, fingerprint

_MODULE: Final = ROOT / "tools/kubelogin"
_PACKAGE: Final = "github.com/Azure/kubelogin"
# For PATH.
_BIN: Final = TOOLS / "bin"


def ensure() -> str:
    """Build the program and link it into `.tools/bin`.

    Returns what was done, for the progress line. Raises SetupError if it cannot be built.
    """
    built = command()
    _BIN.mkdir(parents=True, exist_ok=True)
    draft = _BIN / "kubelogin.draft"
    draft.unlink(missing_ok=True)
    draft.symlink_to(built)
    draft.replace(_BIN / "kubelogin")
    return f"{dotted(pinned.version(_MODULE, _PACKAGE))} built from tools/kubelogin"


def command() -> Path:
    """The program, built once for each state of the pin; raises SetupError if it cannot be built."""
    target = TOOLS / f"kubelogin-{fingerprint(pinned.files(_MODULE))}"
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "kubelogin.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _build(target)
    return target / "kubelogin"


def _build(target: Path) -> None:
    version = dotted(pinned.version(_MODULE, _PACKAGE))
    draft = target.with_name(f"{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        go = golang.command()
        pinned.build("kubelogin", _MODULE, _PACKAGE, draft / "kubelogin", version=version, go=go)
    except ProcessError as error:
        raise SetupError(
            f"kubelogin cannot be built:\n{error}\n"
            "Way out: let this machine reach a Go module proxy (set its address with `go env -w GOPROXY=...`)."
        ) from None
    draft.rename(target)
