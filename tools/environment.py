"""The virtual environment `.venv` with the packages of requirements.txt, and the `idstack` command in it."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from tools.steps import ROOT, VENV, WHEELS_ALONE, ProcessError, SetupError, fingerprint, pip_install, report, run

_LOCK = ROOT / "requirements.txt"
_STAMP = VENV / ".setup"
_PYTHON = VENV / "bin/python"
_COMMAND = VENV / "bin/idstack"
_MB = 1 << 20
_NEEDED = 900 * _MB
_AZURE_NATIVE = re.compile(r"^from pulumi_azure_native import (.+)$", re.MULTILINE)


def ensure() -> str:
    """Make `.venv` match requirements.txt.

    Returns what was done, for the progress line. Raises SetupError if the packages cannot be installed.
    """
    wanted = fingerprint([_LOCK, Path(__file__), str(ROOT)])
    if _STAMP.exists() and _STAMP.read_text() == wanted and _PYTHON.exists():
        return "up to date"
    if (free := shutil.disk_usage(ROOT).free) < _NEEDED:
        raise SetupError(
            f"packages and Pulumi CLI take {_NEEDED // _MB} MB, and the disk of {ROOT} has {free // _MB} MB left.\n"
            "Free some space there, or move the checkout, and run `make setup` again."
        )
    _STAMP.unlink(missing_ok=True)
    uv = shutil.which("uv")
    installer = "uv" if uv else "pip, as uv is not on PATH"
    report(f"packages: installing requirements.txt with {installer}; a few minutes, once")
    try:
        if uv:
            _with_uv(uv)
        else:
            _with_pip()
        _compile()
    except ProcessError as error:
        raise SetupError(
            f"the packages cannot be installed:\n{error}\n"
            "Ways out: reach a package index (its address belongs in the settings of uv or pip), "
            f"or remove {VENV.name} and run `make setup` again."
        ) from None
    _link_members()
    write_command(_COMMAND, _PYTHON)
    _STAMP.write_text(wanted)
    return f"installed into {VENV.name}"


def _with_uv(uv: str) -> None:
    if not _PYTHON.exists():
        run([uv, "venv", "--allow-existing", "--python", sys.executable, VENV])
    run([uv, "pip", "sync", *WHEELS_ALONE, "--python", _PYTHON, _LOCK], progress=lambda _: "installing")


def _with_pip() -> None:
    if not _PYTHON.exists():
        try:
            run([sys.executable, "-m", "venv", VENV])
        except ProcessError as error:
            shutil.rmtree(VENV, ignore_errors=True)
            raise SetupError(
                f"no virtual environment can be made with {sys.executable}:\n{error}\n"
                "Ways out: install its venv module (Debian: python3-venv), or install uv."
            ) from None
    # Without resolving again, which takes longer than the rest: the lock is complete.
    pip_install(_PYTHON, "--no-compile", "--no-deps", "-r", _LOCK, progress=lambda _: "installing")


def _compile() -> None:
    """Compile the packages, on all cores: with PYTHONDONTWRITEBYTECODE each start would otherwise compile the SDKs.

    Of azure-native, only what the program imports: to compile its other modules takes longer than the rest.
    """
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "components").rglob("*.py"))
    imported = {name for names in _AZURE_NATIVE.findall(sources) for name in names.split(", ")}
    others = rf"/pulumi_azure_native/(?!({'|'.join(sorted(imported))})/)\w+/"
    run([_PYTHON, "-m", "compileall", "-q", "-j", "0", "-x", others, VENV / "lib"], progress=lambda _: "compiling")


def _link_members() -> None:
    """Make the packages below `cloud/` importable, as an editable install of them would."""
    [packages] = (VENV / "lib").glob("python*/site-packages")
    (packages / "localcloud.pth").write_text(f"{ROOT / 'cloud'}\n")


def write_command(command: Path, python: Path) -> None:
    """Write the `idstack` command: a script, so that it works from any directory and nothing has to be built."""
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{python}" -P -m ops "$@"\n')
    command.chmod(0o755)
