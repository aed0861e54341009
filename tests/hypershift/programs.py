"""What the images of HyperShift's operators hold, for the local kubelet: each program in a root of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# The two operators, and what they are started with; a program that is here for other purposes waits.
_OPERATORS: Final = ("hypershift-operator", "control-plane-operator")
# A root directory as a container runtime makes it: the pod's volumes at their paths, the program, the authority of the
# local cloud where UBI has its certificates. The tree itself is there, too, for the local kubelet has put its path
# before those in arguments. User and mount namespaces need no privilege. The network is this machine's: where a
# credential probe listens at port 8080 of its pod's address, nobody has that port of every address, as metrics ask for.
_WRAPPER: Final = """#!/bin/sh -e
case "$1" in run|init) ;; *) exec sleep infinity ;; esac
for each; do
  shift
  [ "$each" != 0.0.0.0:8080 ] || each=127.0.0.1:0
  set -- "$@" "$each"
done
export {proxy}SSL_CERT_FILE=/ca.crt PATH="$PATH:/usr/sbin:/sbin"
exec unshare --user --map-root-user --mount sh -ec '
  tree=$PROBE_MOUNT_ROOT root={roots}/$$
  mkdir -p $root && mount -t tmpfs tmpfs $root
  mkdir -p $root/proc $root/dev $root/tmp $root/usr/bin $root/etc/pki/ca-trust/extracted/pem
  mount --rbind /proc $root/proc && mount --rbind /dev $root/dev
  for each in $(cd $tree && find . -mindepth 1 -maxdepth 1 ! -name ".*"); do
    [ $each = ./etc ] || {{ mkdir -p $root/$each && mount --rbind $tree/$each $root/$each; }}
  done
  mkdir -p $root$tree && mount --rbind $tree $root$tree
  cp {ca} $root/ca.crt && cp {ca} $root/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
  touch $root/usr/bin/program && mount --bind {program} $root/usr/bin/program
  exec chroot $root /usr/bin/program "$@"
' "$0" "$@"
"""


def write_programs(folder: Path, binaries: Path, *, proxy: str, ca_file: str) -> None:
    """Write a command for each operator; `proxy` leads Azure's public names to the local cloud."""
    folder.mkdir()
    roots = folder / ".roots"
    roots.mkdir()
    for name in _OPERATORS:
        # Whatever the hypershift-operator has as its proxy, it hands on to every pod of a control plane.
        variable = f"HTTPS_PROXY={proxy} " if name != "hypershift-operator" else ""
        text = _WRAPPER.format(proxy=variable, ca=ca_file, roots=roots, program=binaries / name)
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o700)
