"""What stands for images on the local kubelet: programs, each in a root directory of its own, without a privilege.

Such a root is a tmpfs, as a container runtime makes it: the pod's volumes are at their paths, and so is whatever the
image holds. The tree itself is there, too, for the local kubelet has put its path before those in arguments. The
network is this machine's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

# User and mount namespaces need no privilege.
_SCRIPT: Final = """#!/bin/sh -e
{before}exec unshare --user --map-root-user --mount sh -ec '
  tree=$PROBE_MOUNT_ROOT root={roots}/$$
  mkdir -p $root && mount -t tmpfs tmpfs $root
{layout}  mkdir -p $root$tree && mount --rbind $tree $root$tree
{files}  exec chroot $root {program}
' "$0" "$@"
"""
VOLUMES: Final = """\
  for each in $(cd $tree && find . -mindepth 1 -maxdepth 1 ! -name ".*"); do
    [ $each = ./etc ] || { mkdir -p $root/$each && mount --rbind $tree/$each $root/$each; }
  done
"""
"""Lines of a layout that mount the pod's volumes, but for those below `/etc`."""


def write_program(file: Path, program: str, *, layout: str, before: str = "", files: str = "") -> None:
    """Write the command `file` for the local kubelet, which runs `program`, words of a shell, in a root of its own.

    `before`, `layout` and `files` are lines of the shell, the first outside of the root. The others know `$root` and
    `$tree`, and have no single quotes; `files` come last.
    """
    roots = file.parent / ".roots"
    roots.mkdir(parents=True, exist_ok=True)
    text = _SCRIPT.format(before=before, roots=roots, layout=layout, files=files, program=program)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o700)
