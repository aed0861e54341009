"""Runs of `idstack` in processes that need no new interpreter: a server that has loaded the program forks them.

Starting Python and importing the Azure SDK costs a second of CPU; the fork costs none. The process has the environment
that a test gives it, no terminal, and nothing of the test's own process.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_PROGRAM: Final = ["ops.cli", "ops.commands.token", "identity.aks.sign_in", "identity.aks.device_code", "httpx"]
_context: Final = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(_PROGRAM)


def idstack(arguments: Sequence[str], environ: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `idstack` with these arguments in this environment, without a terminal."""
    with tempfile.TemporaryDirectory() as directory:
        output, errors = Path(directory, "stdout"), Path(directory, "stderr")
        process = _context.Process(target=_run, args=(list(arguments), dict(environ), str(cwd), output, errors))
        process.start()
        process.join()
        code = process.exitcode if process.exitcode is not None else -1
        return subprocess.CompletedProcess(list(arguments), code, output.read_text(), errors.read_text())


def _run(arguments: list[str], environ: dict[str, str], cwd: str, output: Path, errors: Path) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    for descriptor, path in ((0, Path(os.devnull)), (1, output), (2, errors)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    sys.argv = ["idstack", *arguments]
    from ops.__main__ import main

    main()
