"""kubelogin, Azure's own credential plugin: built from its pinned Go module, for whoever runs the tests against it."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import Final

from tools import golang, pinned
from tools.pinned import dotted
from tools.steps import ROOT, TOOLS, CommandError, SetupError, fingerprint

_MODULE: Final = ROOT / "tools/kubelogin"
_PACKAGE: Final = "github.com/Azure/kubelogin"


def command() -> Path:
    """The program, built once for a state of the pin; raises `SetupError`."""
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
    except CommandError as error:
        raise SetupError(
            f"kubelogin can not be built:\n{error}\n"
            "Way out: let this machine reach a Go module proxy (its address belongs into `go env GOPROXY`)."
        ) from None
    draft.rename(target)
