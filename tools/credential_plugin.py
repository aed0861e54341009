"""kubelogin, Azure's own credential plugin: built from its pinned Go module, for workflows and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools import golang, pinned
from tools.pinned import dotted
from tools.steps import ROOT, TOOLS

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
    return golang.build_pinned("kubelogin", _MODULE, _PACKAGE, _PACKAGE)
