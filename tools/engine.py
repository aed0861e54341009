"""The Pulumi CLI with its Python language host: found on PATH, installed, or built from pinned Go modules.

Ways in order of preference:

1. `pulumi` on PATH, when it is at least as new as the pinned version and its Python language host lies beside it;
2. Pulumi's official installer, through the SDK (`pulumi.automation.PulumiCommand.install`);
3. a build of the modules pinned in tools/pulumi and tools/language-host, where a Go module proxy is all one reaches.

The choice is recorded in `.tools/engine.json`, where `ops/stack/environment.py` finds it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from tools import pinned
from tools.pinned import dotted, numbers
from tools.steps import ROOT, TOOLS, VENV, ProcessError, SetupError, fingerprint, report, run

RECORD = TOOLS / "engine.json"
_CLI_MODULE = ROOT / "tools/pulumi"
_HOST_MODULE = ROOT / "tools/language-host"
_LAUNCHER = _HOST_MODULE / "pulumi-language-python"
_SDK = "github.com/pulumi/pulumi/sdk/v3"
_CLI_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
_HOST_PACKAGE = f"{_SDK}/python/cmd/pulumi-language-python"
_INSTALL_SECONDS = 300
# To notice a closed network soon; the installer's own download has no time limit.
_CONNECT_SECONDS = 10


def ensure() -> str:
    """Find, install or build a usable CLI, and record where it is.

    Returns what was chosen, for the progress line. Raises SetupError if there is no way to one.
    """
    pins = [*pinned.files(_CLI_MODULE), *pinned.files(_HOST_MODULE)]
    build = TOOLS / f"pulumi-{fingerprint([*pins, _LAUNCHER])}"
    wanted = fingerprint([Path(__file__), build.name, _identity_on_path(), str(ROOT)])
    if RECORD.exists():
        record = json.loads(RECORD.read_text())
        if record["fingerprint"] == wanted and (Path(record["bin"]) / "pulumi").exists():
            return f"up to date, {record['version']} {record['origin']}"
    minimum = pinned.version(_CLI_MODULE, "github.com/pulumi/pulumi/pkg/v3")
    directory, origin = _choose(build, minimum)
    version = dotted(_version(directory / "pulumi"))
    record = {"bin": str(directory), "origin": origin, "version": version, "fingerprint": wanted}
    draft = RECORD.with_suffix(".draft")
    draft.write_text(json.dumps(record, indent=2) + "\n")
    draft.replace(RECORD)
    return f"{version} {origin}"


def _choose(build: Path, minimum: tuple[int, ...]) -> tuple[Path, str]:
    on_path, not_on_path = _on_path(minimum)
    if on_path:
        return on_path, "from PATH"
    if (build / "pulumi").exists():
        return build, "built from tools/pulumi earlier"
    report(f"pulumi: {not_on_path}; trying Pulumi's installer")
    installed, not_installed = _install(TOOLS / "pulumi-installed", minimum)
    if installed:
        return installed, "from Pulumi's installer"
    report(f"pulumi: {not_installed}; building from the pinned Go modules")
    not_built = _build(build, minimum)
    if not_built is None:
        return build, "built from tools/pulumi"
    text = dotted(minimum)
    raise SetupError(
        "the Pulumi CLI cannot be installed on this machine.\n"
        f"  PATH: {not_on_path}\n  installer: {not_installed}\n  build: {not_built}\n"
        "Ways out, one is enough:\n"
        f"  - install Pulumi {text} or newer (pulumi.com/docs/install) and run `make setup` again\n"
        "  - let this machine reach Pulumi's download site, or copy an installation from another machine onto PATH\n"
        f"  - install Go {pinned.language_version(_CLI_MODULE)} or newer and let it reach a Go module proxy "
        "(go env GOPROXY)"
    )


def _identity_on_path() -> str:
    """Path, time and size of the first `pulumi` on PATH; another one is considered again."""
    found = shutil.which("pulumi")
    if found is None:
        return ""
    status = Path(found).stat()
    return f"{found} {status.st_mtime_ns} {status.st_size}"


def _on_path(minimum: tuple[int, ...]) -> tuple[Path | None, str]:
    found = shutil.which("pulumi")
    if found is None:
        return None, "no pulumi on PATH"
    try:
        version = _version(Path(found))
    except (ProcessError, OSError) as error:
        return None, f"{found} does not run ({error})"
    if version < minimum:
        return None, f"{found} is {'.'.join(map(str, version))}, older than {'.'.join(map(str, minimum))}"
    directory = Path(found).resolve().parent
    # One elsewhere on PATH would not be used: the stacks' commands ignore plugins on PATH (`ops/stack/environment.py`).
    if not (directory / "pulumi-language-python").exists():
        return None, f"{found} has no Python language host beside it"
    return directory, ""


def _install(root: Path, minimum: tuple[int, ...]) -> tuple[Path | None, str]:
    script = (
        "import socket, sys\n"
        f"socket.setdefaulttimeout({_CONNECT_SECONDS})\n"
        "from pulumi.automation import PulumiCommand\n"
        "try:\n"
        f"    PulumiCommand.install(root={str(root)!r})\n"
        "except Exception as error:\n"
        "    sys.exit(f'{type(error).__name__}: {error}')\n"
    )
    try:
        subprocess.run(
            [VENV / "bin/python", "-c", script], check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        return None, f"Pulumi's installer did not finish in {_INSTALL_SECONDS} s"
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["no reason given"])[-1]
        return None, f"Pulumi's installer cannot be used here ({reason})"
    if _version(root / "bin/pulumi") < minimum:
        return None, "Pulumi's installer brought a version older than the pinned one"
    return root / "bin", ""


def _build(target: Path, minimum: tuple[int, ...]) -> str | None:
    """Build CLI and host into `target`; returns None, or why that is impossible."""
    if shutil.which("go") is None:
        return "no go on PATH"
    draft = target.with_name(f"{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        _build_package(_CLI_MODULE, _CLI_PACKAGE, minimum, draft / "pulumi")
        host_version = pinned.version(_HOST_MODULE, _SDK)
        _build_package(_HOST_MODULE, _HOST_PACKAGE, host_version, draft / "pulumi-language-python-host")
        # The scripts come from the CLI's own release: the host starts the program and dynamic providers with them.
        scripts = Path(pinned.run_go(_CLI_MODULE, "list", "-m", "-f", "{{.Dir}}", _SDK)) / "python"
    except ProcessError as error:
        return f"the Go build failed:\n{error}"
    for script in (
        scripts / "cmd/pulumi-language-python-exec",
        scripts / "dist/pulumi-resource-pulumi-python",
        _LAUNCHER,
    ):
        shutil.copyfile(script, draft / script.name)
        (draft / script.name).chmod(0o755)
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    return None


def _build_package(module: Path, package: str, version: tuple[int, ...], output: Path) -> None:
    text = dotted(version)
    flags = f"-X {_SDK}/go/common/version.Version=v{text}"
    pinned.build("pulumi", module, package, output, version=text, flags=flags)


def _version(command: Path) -> tuple[int, ...]:
    printed = run([command, "version"], environment={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"})
    return numbers(re.search(r"v(\d+\.\d+\.\d+)", printed))
