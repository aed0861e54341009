"""A program that others have built, in a root directory of its own with a pod's mounts, as in a container.

User and mount namespaces need no privilege. The network is this machine's.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

_PT_INTERP: Final = 3
# The pod's volumes at their paths, the program, the authority of the local cloud where UBI has its certificates. The
# tree itself is there, too, for the local kubelet has put its path before those in arguments.
SCRIPT: Final = """
  tree=$1 root=$2 ca=$3 shared=$4 program=$5
  shift 5
  mkdir -p $root && mount -t tmpfs tmpfs $root
  mkdir -p $root/proc $root/dev $root/tmp $root/usr/bin $root/etc/pki/ca-trust/extracted/pem
  mount --rbind /proc $root/proc && mount --rbind /dev $root/dev
  for each in $(cd $tree && find . ./etc -mindepth 1 -maxdepth 1 ! -name ".*" ! -name etc ! -name pki 2>/dev/null); do
    mkdir -p $root/$each && mount --rbind $tree/$each $root/$each
  done
  mkdir -p $root$tree && mount --rbind $tree $root$tree
  [ -z "$shared" ] || mount --rbind $shared $root/tmp
  cp $ca $root/ca.crt && cp $ca $root/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
  touch $root/usr/bin/program && mount --bind $program $root/usr/bin/program
  exec chroot $root /usr/bin/program "$@"
"""
"""For `UNSHARED`, with a name and these arguments: the tree of mounts, a directory that becomes the root, the
authority, a directory that the program has as /tmp (empty: one of its own), the program, its own arguments."""
UNSHARED: Final = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")


def is_dynamic(program: Path) -> bool:
    """Whether a 64-bit ELF program needs an interpreter (`ld-linux`), by its program headers; see elf(5)."""
    image = program.read_bytes()
    (table,) = struct.unpack_from("<Q", image, 32)
    size, number = struct.unpack_from("<HH", image, 54)
    return any(struct.unpack_from("<I", image, table + size * entry) == (_PT_INTERP,) for entry in range(number))
