"""The Pulumi CLI with its Python language host: found on PATH, downloaded, or built, the last two by checksum.

Ways in order of preference:

1. `pulumi` on PATH, when it is at least as new as the pinned version and its Python language host lies beside it;
   never with `IDSTACK_PULUMI=pinned`, which every workflow sets: the checksum of what a machine has is unknown;
2. the archive of Pulumi's release whose SHA-256 is in tools/checksums.txt;
3. a build of the modules pinned in tools/pulumi and tools/language-host, where a Go module proxy is all one reaches.

The choice is recorded in `.tools/engine.json`, where `ops/stack/environment.py` finds it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Final

from tools import downloads, pinned
from tools.downloads import Archive, DownloadError
from tools.pinned import dotted, numbers
from tools.steps import ROOT, TOOLS, ProcessError, SetupError, drafted, fingerprint, report, run

RECORD = TOOLS / "engine.json"
_CLI_MODULE = ROOT / "tools/pulumi"
_HOST_MODULE = ROOT / "tools/language-host"
_LAUNCHER = _HOST_MODULE / "pulumi-language-python"
_CHECKSUMS = downloads.CHECKSUMS
_SDK = "github.com/pulumi/pulumi/sdk/v3"
_CLI_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
_HOST_PACKAGE = f"{_SDK}/python/cmd/pulumi-language-python"
# `pinned` passes over the CLI on PATH.
VARIABLE: Final = "IDSTACK_PULUMI"
PINNED: Final = "pinned"


def ensure() -> str:
    """Find, download or build a usable CLI, and record where it is.

    Returns what was chosen, for the progress line. Raises SetupError if there is no way to one.
    """
    wish = os.environ.get(VARIABLE, "")
    if wish not in ("", PINNED):
        raise SetupError(f'{VARIABLE}: found "{wish}"; accepted: {PINNED}, or leave it out to take the CLI on PATH')
    pins = [*pinned.files(_CLI_MODULE), *pinned.files(_HOST_MODULE)]
    build = TOOLS / f"pulumi-{fingerprint([*pins, _LAUNCHER])}"
    minimum = pinned.version(_CLI_MODULE, "github.com/pulumi/pulumi/pkg/v3")
    archive = downloads.cli_archive(dotted(minimum), *downloads.this_platform())
    checksum = downloads.checksums(_CHECKSUMS).get(archive.name)
    on_path = "" if wish else _identity_on_path()
    wanted = fingerprint([Path(__file__), build.name, wish, on_path, checksum or "", str(ROOT)])
    if RECORD.exists():
        record = json.loads(RECORD.read_text())
        if record["fingerprint"] == wanted and (Path(record["bin"]) / "pulumi").exists():
            return f"up to date, {record['version']} {record['origin']}"
    directory, origin = _choose(build, minimum, archive, checksum, wish)
    version = dotted(_version(directory / "pulumi"))
    record = {"bin": str(directory), "origin": origin, "version": version, "fingerprint": wanted}
    draft = RECORD.with_suffix(".draft")
    draft.write_text(json.dumps(record, indent=2) + "\n")
    draft.replace(RECORD)
    return f"{version} {origin}"


def _choose(
    build: Path, minimum: tuple[int, ...], archive: Archive, checksum: str | None, wish: str
) -> tuple[Path, str]:
    on_path, not_on_path = (None, f"{VARIABLE}={PINNED}") if wish else _on_path(minimum)
    if on_path:
        return on_path, "from PATH"
    downloaded = TOOLS / f"pulumi-{checksum}"
    if (downloaded / "pulumi").exists():
        return downloaded, "downloaded earlier"
    if (build / "pulumi").exists():
        return build, "built from tools/pulumi earlier"
    text = dotted(minimum)
    report(f"pulumi: {not_on_path}; trying the archive of Pulumi's release {text}")
    not_downloaded = _download(downloaded, archive, checksum)
    if not_downloaded is None:
        return downloaded, "downloaded"
    report(f"pulumi: {not_downloaded}; building from the pinned Go modules")
    not_built = _build(build, minimum)
    if not_built is None:
        return build, "built from tools/pulumi"
    raise SetupError(
        "the Pulumi CLI cannot be installed on this machine.\n"
        f"  PATH: {not_on_path}\n  download: {not_downloaded}\n  build: {not_built}\n"
        "Ways out, one is enough:\n"
        f"  - install Pulumi {text} or newer (pulumi.com/docs/install), or copy an installation onto PATH, and run\n"
        f"    `make setup` again without {VARIABLE}\n"
        "  - let this machine reach Pulumi's releases on GitHub\n"
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


def _download(target: Path, archive: Archive, checksum: str | None) -> str | None:
    """Download the CLI into `target`; returns None, or why that is impossible."""
    if checksum is None:
        return f"{_CHECKSUMS.name} has no checksum of {archive.name}"
    packed = TOOLS / archive.name
    try:
        with drafted(target) as draft:
            downloads.fetch_any(archive.urls, packed, checksum)
            downloads.unpack(packed, "pulumi", draft)
            if not all((draft / name).exists() for name in ("pulumi", "pulumi-language-python")):
                raise DownloadError(f"{archive.name} has no Pulumi CLI with a Python language host")
    except DownloadError as error:
        return str(error)
    finally:
        packed.unlink(missing_ok=True)
    return None


def _build(target: Path, minimum: tuple[int, ...]) -> str | None:
    """Build CLI and host into `target`; returns None, or why that is impossible."""
    if shutil.which("go") is None:
        return "no go on PATH"
    try:
        with drafted(target) as draft:
            _build_package(_CLI_MODULE, _CLI_PACKAGE, minimum, draft / "pulumi")
            host_version = pinned.version(_HOST_MODULE, _SDK)
            _build_package(_HOST_MODULE, _HOST_PACKAGE, host_version, draft / "pulumi-language-python-host")
            # The scripts come from the CLI's own release: the host starts the program and dynamic providers with them.
            python = Path(pinned.run_go(_CLI_MODULE, "list", "-m", "-f", "{{.Dir}}", _SDK)) / "python"
            scripts = (python / "cmd/pulumi-language-python-exec", python / "dist/pulumi-resource-pulumi-python")
            for script in (*scripts, _LAUNCHER):
                shutil.copyfile(script, draft / script.name)
                (draft / script.name).chmod(0o755)
    except ProcessError as error:
        return f"the Go build failed:\n{error}"
    return None


def _build_package(module: Path, package: str, version: tuple[int, ...], output: Path) -> None:
    text = dotted(version)
    flags = f"-X {_SDK}/go/common/version.Version=v{text}"
    pinned.build("pulumi", module, package, output, version=text, flags=flags)


def _version(command: Path) -> tuple[int, ...]:
    printed = run([command, "version"], environment={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"})
    return numbers(re.search(r"v(\d+\.\d+\.\d+)", printed))
