"""Programs that others have written: installed from their locks for the tests and the audit that run them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools import golang
from tools.steps import ROOT, TOOLS, WHEELS_ALONE, ProcessError, SetupError, fingerprint, report, run

_CLI_LOCK: Final = ROOT / "tests/clients/azure-cli.txt"
_PYTHON_LOCK: Final = ROOT / "tests/clients/python.txt"
_MODELS_LOCK: Final = ROOT / "tests/clients/azure-models.txt"
_AUDIT_LOCK: Final = ROOT / "tools/audit/requirements.txt"
_JAVASCRIPT: Final = ROOT / "tests/clients/javascript"
_BROWSER: Final = ROOT / "tests/browser/driver"
# Go module, release, and its checksum (`go.sum`). HyperShift's scripts are those of 3ee9615.
_HYPERSHIFT: Final = ("github.com/openshift/hypershift", "v0.1.80", "h1:M6C6w97IPRytJiI4N29+yeh2tVrZ8can7nQ8C1TtUn8=")
_CSI_DRIVER: Final = (
    "sigs.k8s.io/secrets-store-csi-driver",
    "v1.6.0",
    "h1:YpKG/2hJkp3EkRGpH5SPxg1/5AkmeD5pwHNKIlE90FU=",
)
# What HyperShift's operator watches on a cluster that is no OpenShift: the module that HyperShift itself has, as the
# commit whose file its scripts name is not on the module proxy, and a release of the other.
_OPENSHIFT_API: Final = (
    "github.com/openshift/api",
    "v0.0.0-20260805160557-b61243060d5f",
    "h1:NU7ltJhtFhqAJC+77DcNk6jmIpsJ3a+mebZIceiPW+U=",
)
_PROMETHEUS_OPERATOR: Final = (
    "github.com/prometheus-operator/prometheus-operator",
    "v0.85.0",
    "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
)


def azure_cli() -> Path:
    """The folder with `az`, in an environment of its own; raises SetupError if it cannot be installed."""
    return _installed("azure-cli", [_CLI_LOCK], _environment_of(_CLI_LOCK)) / "bin"


def python() -> Path:
    """Python with Microsoft's libraries, in an environment of its own; raises SetupError if it cannot be installed."""
    return _installed("python", [_PYTHON_LOCK], _environment_of(_PYTHON_LOCK)) / "bin/python"


def azure_models() -> Path:
    """Python with Microsoft's libraries of the API versions that are sent; raises SetupError as `python` does."""
    return _installed("azure-models", [_MODELS_LOCK], _environment_of(_MODELS_LOCK)) / "bin/python"


def audit() -> Path:
    """The folder with `pip-audit`, and a `python` with CycloneDX's library; raises SetupError if they cannot be had."""
    return _installed("audit", [_AUDIT_LOCK], _environment_of(_AUDIT_LOCK)) / "bin"


def javascript() -> Path:
    """The folder of the JavaScript client with its packages; raises SetupError, also where there is no Node."""
    return _installed("javascript", sorted(_JAVASCRIPT.iterdir()), _install_javascript)


def browser() -> Path:
    """The folder of the browser's driver with Chromium and ESLint; raises SetupError, also where there is no Node."""
    return _installed("browser", sorted(_BROWSER.iterdir()), _install_browser)


def hypershift() -> Path:
    """The folder with HyperShift's source, out of the Go module of its release; raises SetupError."""
    return _source(*_HYPERSHIFT)


def csi_driver() -> Path:
    """The folder with the source of the Secrets Store CSI driver, out of its release's Go module; raises SetupError."""
    return _source(*_CSI_DRIVER)


def openshift_api() -> Path:
    """The folder with the API of OpenShift and its definitions, out of the Go module; raises SetupError."""
    return _source(*_OPENSHIFT_API)


def prometheus_operator() -> Path:
    """The folder with the definitions of the Prometheus operator, out of its Go module; raises SetupError."""
    return _source(*_PROMETHEUS_OPERATOR)


def _source(module: str, release: str, checksum: str) -> Path:
    try:
        found = json.loads(run([golang.command(), "mod", "download", "-json", f"{module}@{release}"], directory=TOOLS))
    except ProcessError as error:
        raise SetupError(f"{module} cannot be downloaded:\n{error}") from None
    if found["Sum"] != checksum:
        raise SetupError(f"{module} {release} has the checksum {found['Sum']}, not {checksum}")
    return Path(found["Dir"])


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
        run([target / "bin/pip", "install", "--quiet", *WHEELS_ALONE, "--requirement", lock])

    return install


def _install_javascript(target: Path) -> None:
    shutil.copytree(_JAVASCRIPT, target)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory=target)


def _install_browser(target: Path) -> None:
    shutil.copytree(_BROWSER, target)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory=target)
    # Its package unpacks Chromium into the directory for temporary files.
    run(["node", "driver.mjs", "prepare"], directory=target, environment={**os.environ, "TMPDIR": str(target)})
