"""Where the control plane's commands are: where LOCALCLOUD_BINARIES says, or where set-up left a record."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_VARIABLE: Final = "LOCALCLOUD_BINARIES"
# Not resolved: a project directory may consist of links to another checkout.
_RECORD: Final = Path(__file__).absolute().parents[3] / ".tools/cluster.json"


class NotBuiltError(RuntimeError):
    """The commands are not on this machine."""


@dataclass(frozen=True)
class Binaries:
    """The directory with `etcd`, `kube-apiserver`, `kube-controller-manager` and `kubectl`."""

    directory: Path

    @classmethod
    def find(cls, record: Path = _RECORD, environ: Mapping[str, str] = os.environ) -> Binaries:
        """Those of the environment, else of this checkout; raises `NotBuiltError`."""
        if named := environ.get(_VARIABLE):
            if not Path(named, "kube-apiserver").exists():
                raise NotBuiltError(f"{_VARIABLE}={named}: no kube-apiserver is in there")
            return cls(Path(named))
        try:
            directory = Path(json.loads(record.read_text(encoding="utf-8"))["bin"])
        except FileNotFoundError:
            raise NotBuiltError(
                "kube-apiserver is not on this machine: let "
                f"{_VARIABLE} name a folder with etcd, kube-apiserver and kube-controller-manager"
            ) from None
        if not (directory / "kube-apiserver").exists():
            raise NotBuiltError(
                f"{directory}, where kube-apiserver was, is gone: build it again, or let {_VARIABLE} name another "
                "folder"
            )
        return cls(directory)

    def path(self, name: str) -> str:
        """The path of a command."""
        return str(self.directory / name)
