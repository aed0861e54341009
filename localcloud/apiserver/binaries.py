"""Where the control plane's commands are: `tools/cluster.py` builds them and leaves a record."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Not resolved: a project directory may be made of links to another checkout.
_RECORD: Final = Path(__file__).absolute().parents[2] / ".tools/cluster.json"


class NotBuilt(RuntimeError):
    """The commands are not on this machine."""


@dataclass(frozen=True)
class Binaries:
    """The directory with `etcd`, `kube-apiserver`, `kube-controller-manager` and `kubectl`."""

    directory: Path

    @classmethod
    def find(cls, record: Path = _RECORD) -> Binaries:
        """Those of this checkout; raises `NotBuilt`."""
        try:
            directory = Path(json.loads(record.read_text(encoding="utf-8"))["bin"])
        except FileNotFoundError:
            raise NotBuilt("kube-apiserver is not built yet: `make setup CLUSTER=apiserver` builds it, once") from None
        if not (directory / "kube-apiserver").exists():
            raise NotBuilt(f"{directory} is gone: `make setup CLUSTER=apiserver` builds kube-apiserver again")
        return cls(directory)

    def path(self, name: str) -> str:
        """The path of a command."""
        return str(self.directory / name)
