"""Where the Kubernetes API of this machine answers, for the services that hand out kubeconfigs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from localcloud.core.cluster import ClusterKind
from localcloud.core.store import Store

_KIND: Final = "environment"
_KEY: Final = "kubernetes-endpoint"


@dataclass(frozen=True)
class Endpoint:
    """Server URL, base64 of the authority's PEM, and what answers."""

    server: str
    ca: str
    cluster: ClusterKind

    def save(self, store: Store) -> None:
        """Record it for every process of this local cloud."""
        store.put(_KIND, _KEY, asdict(self))

    @classmethod
    def load(cls, store: Store) -> Endpoint:
        """The recorded endpoint; raises LookupError before the local cloud was prepared."""
        known = store.get(_KIND, _KEY)
        if known is None:
            raise LookupError("no Kubernetes API was prepared: `python -m localcloud start` prepares one")
        return cls(known["server"], known["ca"], ClusterKind(known["cluster"]))
