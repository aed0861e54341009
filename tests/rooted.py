"""A program that others have built, in a root directory of its own with a pod's mounts, as in a container.

User and mount namespaces need no privilege. The network is this machine's.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PT_INTERP: Final = 3
SCRIPT: Final = Path(__file__).with_name("rooted.sh").read_text(encoding="utf-8")
"""For `UNSHARED`, with a name and these arguments: the tree of mounts, a directory that becomes the root, the
authority, a directory that the program has as /tmp (empty: one of its own), the program, its own arguments."""
UNSHARED: Final = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")


def lacking(variable: str, *files: str, programs: Sequence[str] = ()) -> str:
    """What the folder in an environment variable has not of the files and programs that tests need; "" if all is there.

    A program must start without libc, which no container here has.
    """
    folder = os.environ.get(variable)
    if not folder:
        return f"{variable} names no folder with {', '.join((*programs, *files))} (docs/explanation/testing.md)"
    missing = [name for name in programs if not os.access(Path(folder, name), os.X_OK)]
    missing += [name for name in files if not Path(folder, name).is_file()]
    if missing:
        return f"{variable}={folder} has no {', '.join(missing)} (docs/explanation/testing.md)"
    if dynamic := [name for name in programs if is_dynamic(Path(folder, name))]:
        return (
            f"{', '.join(dynamic)} in {variable}={folder} cannot start without libc: build with CGO_ENABLED=0 "
            "(docs/explanation/testing.md)"
        )
    return ""


def is_dynamic(program: Path) -> bool:
    """Whether a 64-bit ELF program needs an interpreter (`ld-linux`), by its program headers; see elf(5)."""
    image = program.read_bytes()
    (table,) = struct.unpack_from("<Q", image, 32)
    size, number = struct.unpack_from("<HH", image, 54)
    return any(struct.unpack_from("<I", image, table + size * entry) == (_PT_INTERP,) for entry in range(number))
