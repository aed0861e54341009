"""The files that kubectl reads, and writing to them as kubectl does.

Source: client-go's tools/clientcmd, `ModifyConfig` in config.go and `GetDefaultFilename` in loader.go.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from identity.aks.kubeconfig import Kubeconfig, MalformedKubeconfigError
from identity.private_files import write_private

# How long to wait for another writer, in seconds; kubectl itself does not wait.
_PATIENCE: Final = 10.0
_PAUSE: Final = 0.1


def usual_files(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The files of KUBECONFIG in their order, or the one in the home directory."""
    named = dict.fromkeys(name for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name)
    return tuple(map(Path, named)) or (Path.home() / ".kube" / "config",)


def add(
    files: Sequence[Path],
    added: Kubeconfig,
    patience: float = _PATIENCE,
    sleep: Callable[[float], object] = time.sleep,
) -> list[Path]:
    """Write the entries of `added`, and its current context, into the files that kubectl would change; returns these.

    An entry replaces the first one of its name, so that no earlier file hides it; a new one goes into the first file
    that exists. Raises MalformedKubeconfigError, also when another writer holds a file for `patience`.
    """
    with ExitStack() as locks:
        for file in sorted(files):
            locks.enter_context(_locked(file, patience, sleep))
        read = {file: Kubeconfig.read(file) for file in files}
        usual = next((file for file in files if file.exists()), files[0])
        changed: dict[Path, Kubeconfig] = {}
        for section in ("clusters", "contexts", "users"):
            for name, entry in added.entries(section).items():
                file = next((candidate for candidate in files if read[candidate].has(section, name)), usual)
                changed[file] = changed.get(file, read[file]).with_entries(section, {name: entry})
        if added.current_context is not None:
            changed[usual] = changed.get(usual, read[usual]).with_current_context(added.current_context)
        for file, content in changed.items():
            _write(file, content)
        return list(changed)


def _write(path: Path, content: Kubeconfig) -> None:
    """Replace the file in one step, 0600; a link stays one."""
    try:
        write_private(path.resolve(), content.to_yaml())
    except OSError as error:
        raise _unwritable(path, error) from None


@contextmanager
def _locked(path: Path, patience: float, sleep: Callable[[float], object]) -> Iterator[None]:
    """Hold the lock that kubectl takes, a file beside the kubeconfig."""
    lock, deadline = Path(f"{path}.lock"), time.monotonic() + patience
    while True:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            break
        except FileExistsError:
            if time.monotonic() >= deadline:
                raise MalformedKubeconfigError(
                    f"{path} is being written by another program: {lock} is there; nothing was changed. If no kubectl "
                    f"runs any more, `rm {shlex.quote(str(lock))}`"
                ) from None
            sleep(_PAUSE)
        except OSError as error:
            raise _unwritable(path, error) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> MalformedKubeconfigError:
    return MalformedKubeconfigError(f"{path} cannot be written ({error.strerror}); name another with --file")
