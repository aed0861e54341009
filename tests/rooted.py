"""A program that others have built, in a root directory of its own with a pod's mounts, as in a container.

User and mount namespaces need no privilege. The network is this machine's.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

_PT_INTERP: Final = 3
SCRIPT: Final = Path(__file__).with_name("rooted.sh").read_text(encoding="utf-8")
"""For `UNSHARED`, with a name and these arguments: the tree of mounts, a directory that becomes the root, the
authority, a directory that the program has as /tmp (empty: one of its own), the program, its own arguments."""
UNSHARED: Final = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")


def is_dynamic(program: Path) -> bool:
    """Whether a 64-bit ELF program needs an interpreter (`ld-linux`), by its program headers; see elf(5)."""
    image = program.read_bytes()
    (table,) = struct.unpack_from("<Q", image, 32)
    size, number = struct.unpack_from("<HH", image, 54)
    return any(struct.unpack_from("<I", image, table + size * entry) == (_PT_INTERP,) for entry in range(number))
