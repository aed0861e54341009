"""Which Kubernetes API a local cloud has, and who signs in to it."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from localcloud.core.store import Store

# Where the Kubernetes API of this machine answers, for the services that hand out kubeconfigs.

_ENDPOINT_KIND: Final = "environment"
_KEY: Final = "kubernetes-endpoint"


@dataclass(frozen=True)
class Endpoint:
    """Server URL, base64 of the authority's PEM, and what answers."""

    server: str
    ca: str
    cluster: ClusterKind

    def save(self, store: Store) -> None:
        """Record it for every process of this local cloud."""
        store.put(_ENDPOINT_KIND, _KEY, asdict(self))

    @classmethod
    def load(cls, store: Store) -> Endpoint:
        """The recorded endpoint; raises LookupError before the local cloud was prepared."""
        known = store.get(_ENDPOINT_KIND, _KEY)
        if known is None:
            raise LookupError("no Kubernetes API was prepared: `python -m localcloud start` prepares one")
        return cls(known["server"], known["ca"], ClusterKind(known["cluster"]))


_KIND: Final = "environment"
_CHOICE: Final = "cluster"


class ClusterKind(StrEnum):
    BUILT_IN = "builtin"
    API_SERVER = "apiserver"


class ClusterKindConflictError(ValueError):
    """This local cloud was started with the other kind, and its kind is fixed."""


@dataclass(frozen=True)
class KubernetesUser:
    """Someone who signs in with a bearer token of its own."""

    name: str
    groups: tuple[str, ...] = ()


DEPLOYER: Final = KubernetesUser("deployer")
KUBELET: Final = KubernetesUser("kubelet")
# system:masters: past all authorization, as `az aks get-credentials --admin` hands it out.
ADMINISTRATOR: Final = KubernetesUser("administrator", ("system:masters",))
# The name that kube-apiserver's own bootstrap roles are bound to.
CONTROLLER_MANAGER: Final = KubernetesUser("system:kube-controller-manager")
USERS: Final = (DEPLOYER, KUBELET, ADMINISTRATOR, CONTROLLER_MANAGER)


def choose(store: Store, wanted: ClusterKind | None = None) -> ClusterKind:
    """The kind, chosen on the first call, the built-in API by default; raises ClusterKindConflictError for another."""
    with store.transaction():
        known = store.get(_KIND, _CHOICE)
        if known is None:
            kind = wanted or ClusterKind.BUILT_IN
            store.put(_KIND, _CHOICE, {"kind": kind})
            return kind
    kind = ClusterKind(known["kind"])
    if wanted not in {None, kind}:
        raise ClusterKindConflictError(
            f"this local cloud has its Kubernetes API from {_DISPLAY_NAMES[kind]}, which is fixed: end it, and all "
            f"that is in it, with `localcloud stop --remove`, then `localcloud start --cluster {wanted}` starts one "
            f"with {_DISPLAY_NAMES[ClusterKind(str(wanted))]}"
        )
    return kind


_DISPLAY_NAMES: Final = {ClusterKind.BUILT_IN: "the built-in server", ClusterKind.API_SERVER: "kube-apiserver"}


def token(store: Store, cluster: ClusterKind, user: KubernetesUser) -> str:
    """The user's bearer token, created once and kept sealed; the built-in API knows only the deployer's."""
    owner = user if cluster is ClusterKind.API_SERVER else DEPLOYER
    return store.kept(_KIND, f"kubernetes-token-{owner.name}", lambda: secrets.token_urlsafe(32))
