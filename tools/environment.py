"""The virtual environment `.venv` with the packages of requirements.txt, and the `idstack` command in it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.steps import ROOT, VENV, CommandError, SetupError, fingerprint, run, say

_LOCK = ROOT / "requirements.txt"
_STAMP = VENV / ".setup"
_PYTHON = VENV / "bin/python"
_COMMAND = VENV / "bin/idstack"


def ensure() -> str:
    """Bring `.venv` to what requirements.txt says; raises `SetupError`. Returns what was done."""
    wanted = fingerprint([_LOCK, Path(__file__), str(ROOT)])
    if _STAMP.exists() and _STAMP.read_text() == wanted and _PYTHON.exists():
        return "up to date"
    _STAMP.unlink(missing_ok=True)
    uv = shutil.which("uv")
    installer = "uv" if uv else "pip, as uv is not on PATH"
    say(f"packages: installing requirements.txt with {installer}; a few minutes, once")
    try:
        if uv:
            _with_uv(uv)
        else:
            _with_pip()
    except CommandError as error:
        raise SetupError(
            f"the packages can not be installed:\n{error}\n"
            "Ways out: reach a package index (its address belongs into the settings of uv or pip), "
            f"or remove {VENV.name} and run `make setup` again."
        ) from None
    _write_command()
    _STAMP.write_text(wanted)
    return f"installed into {VENV.name}"


def _with_uv(uv: str) -> None:
    if not _PYTHON.exists():
        run([uv, "venv", "--allow-existing", "--python", sys.executable, VENV])
    # Compiled now, because an environment with PYTHONDONTWRITEBYTECODE would otherwise compile the SDKs at every start.
    install = [uv, "pip", "sync", "--require-hashes", "--compile-bytecode", "--python", _PYTHON, _LOCK]
    run(install)


def _with_pip() -> None:
    if not _PYTHON.exists():
        try:
            run([sys.executable, "-m", "venv", VENV])
        except CommandError as error:
            shutil.rmtree(VENV, ignore_errors=True)
            raise SetupError(
                f"no virtual environment can be made with {sys.executable}:\n{error}\n"
                "Ways out: install its venv module (Debian: python3-venv), or install uv."
            ) from None
    install = [_PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes", "-r", _LOCK]
    run(install)


def _write_command() -> None:
    """The `idstack` command: a script, so that it works from any directory and there is nothing to build."""
    _COMMAND.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{_PYTHON}" -P -m ops "$@"\n'
    )
    _COMMAND.chmod(0o755)
