"""Programs that others have written: installed from their locks for the tests and the audit that run them."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools.steps import ROOT, TOOLS, ProcessError, SetupError, fingerprint, pip_install, report, run

_CLI_LOCK: Final = ROOT / "cloud/tests/clients/azure-cli.txt"
_MODELS_LOCK: Final = ROOT / "tests/clients/azure-models.txt"
_BROWSER: Final = ROOT / "tests/browser/driver"


def azure_cli() -> Path:
    """The folder with `az`, in an environment of its own; raises SetupError if it cannot be installed."""
    return _installed("azure-cli", [_CLI_LOCK], _environment_of(_CLI_LOCK)) / "bin"


def azure_models() -> Path:
    """Python with Microsoft's libraries of the API versions that are sent; raises SetupError as `azure_cli` does."""
    return _installed("azure-models", [_MODELS_LOCK], _environment_of(_MODELS_LOCK)) / "bin/python"


def browser() -> Path:
    """The folder of the browser's driver with Chromium and ESLint; raises SetupError, also where there is no Node."""
    return _installed("browser", sorted(_BROWSER.iterdir()), _install_browser)


def _installed(name: str, parts: list[Path], install: Callable[[Path], None]) -> Path:
    target = TOOLS / f"{name}-{fingerprint(parts)}"
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "clients.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / _COMPLETE).exists():
            report(f"{name}: installing from its lock, once; the Azure CLI takes minutes")
            shutil.rmtree(target, ignore_errors=True)
            try:
                install(target)
            except (OSError, ProcessError) as error:
                raise SetupError(f"{name} cannot be installed:\n{error}") from None
            (target / _COMPLETE).touch()
    return target


# A virtual environment cannot be moved, so it is made in its place.
_COMPLETE: Final = "complete"


def _environment_of(lock: Path) -> Callable[[Path], None]:
    def install(target: Path) -> None:
        run([sys.executable, "-m", "venv", target])
        pip_install(target / "bin/python", "--quiet", "--requirement", lock)

    return install


def _install_browser(target: Path) -> None:
    shutil.copytree(_BROWSER, target)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory=target)
    # Its package unpacks Chromium into the directory for temporary files.
    run(["node", "driver.mjs", "prepare"], directory=target, environment={**os.environ, "TMPDIR": str(target)})
