"""What the images of HyperShift's operators hold, for the local kubelet: each program in a root of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.rooted import SCRIPT, UNSHARED

# The two operators, and what they are started with; a program that is here for other purposes waits.
_OPERATORS: Final = ("hypershift-operator", "control-plane-operator")
# The network is this machine's: where a credential probe listens at port 8080 of its pod's address, nobody has
# that port of every address, as metrics ask for.
_WRAPPER: Final = """#!/bin/sh -e
case "$1" in run|init) ;; *) exec sleep infinity ;; esac
for each; do
  shift
  [ "$each" != 0.0.0.0:8080 ] || each=127.0.0.1:0
  set -- "$@" "$each"
done
export {proxy}SSL_CERT_FILE=/ca.crt PATH="$PATH:/usr/sbin:/sbin"
exec {unshared} '{script}' "$0" "$PROBE_MOUNT_ROOT" {roots}/$$ {ca} "" {program} "$@"
"""


def write_programs(folder: Path, binaries: Path, *, proxy: str, ca_file: str) -> None:
    """Write a command for each operator; `proxy` leads Azure's public names to the local cloud."""
    folder.mkdir()
    roots = folder / ".roots"
    roots.mkdir()
    for name in _OPERATORS:
        # Whatever the hypershift-operator has as its proxy, it hands on to every pod of a control plane.
        variable = f"HTTPS_PROXY={proxy} " if name != "hypershift-operator" else ""
        text = _WRAPPER.format(
            **{"proxy": variable, "ca": ca_file, "roots": roots, "program": binaries / name},
            **{"unshared": " ".join(UNSHARED), "script": SCRIPT},
        )
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o700)
