"""The selection of a hosted cluster, an identity or a pod. The rest is neither read nor checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self, TypeVar

from identity.similar import did_you_mean
from ops.stack.errors import CommandError
from ops.world.expected import Cluster, GrantedPrincipal, Identity, StackState
from ops.world.seen import SeenControlPlane, Unread, known

T = TypeVar("T", bound=GrantedPrincipal)


class Subject(Protocol):
    """The subject of a check or a row: a stack (both None), a hosted cluster, or one of its identities."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def identity(self) -> str | None: ...


RowT = TypeVar("RowT", bound=Subject)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The selected names; without any, everything. A pod excludes other names."""

    cluster: str | None = None
    identity: str | None = None
    namespace: str | None = None
    pod: str | None = None

    @classmethod
    def of(cls, cluster: str | None, identity: str | None, pod: str | None) -> Self:
        """Parse `<identity>` or `<cluster>/<identity>`, and `<namespace>/<name>`. Raises ValueError with the reason."""
        if pod is not None:
            namespace, _, name = pod.partition("/")
            if cluster or identity:
                raise ValueError("--pod already selects the cluster and its identities: leave out the other option")
            if not namespace or not name or "/" in name:
                raise ValueError(f"--pod: found {pod!r}; accepted: <namespace>/<name>")
            return cls(namespace=namespace, pod=name)
        of_identity, _, field = (identity or "").rpartition("/")
        if of_identity and cluster not in (None, of_identity):
            raise ValueError(f"--identity {identity} is not of the cluster {cluster}")
        return cls(cluster=of_identity or cluster, identity=field or None)

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    def has(self, cluster: str | None, identity: str | None) -> bool:
        """Whether this place is selected by its names; one of the whole stack (None), or of a whole cluster, always."""
        return self.cluster in (None, cluster or self.cluster) and self.identity in (None, identity or self.identity)

    def of_rows(self, rows: Iterable[RowT]) -> list[RowT]:
        """Those of the selected identities."""
        return [row for row in rows if self.has(row.cluster, row.identity)]

    def of_state(self, state: StackState) -> StackState:
        """The selected part of the state. Raises CommandError for a name that the stack does not have.

        For a pod of no Deployment of the stack's identities, all identities of the cluster: `of_plane` finds those that
        the pod mounts.
        """
        if self.is_everything or not state.is_up:
            return state
        clusters = [
            cluster
            for cluster in state.clusters
            if self.cluster in (None, cluster.cluster) and self.namespace in (None, cluster.namespace)
        ]
        if not clusters:
            raise CommandError(self._unknown_cluster(state))
        if self.pod is not None:
            deployment = self.pod.rsplit("-", 2)[0]
            consumers = [
                replace(cluster, identities=_of_deployment(cluster, deployment), guests=()) for cluster in clusters
            ]
            is_known = any(cluster.identities for cluster in consumers)
            return replace(state, clusters=tuple(consumers if is_known else clusters))
        narrowed = [
            replace(cluster, identities=self._of_identity(cluster.identities), guests=self._of_identity(cluster.guests))
            for cluster in clusters
        ]
        if not any(cluster.identities or cluster.guests for cluster in narrowed):
            known_names = dict.fromkeys(
                identity.identity for cluster in clusters for identity in (*cluster.identities, *cluster.guests)
            )
            raise CommandError(
                f"no identity {self.identity} in {', '.join(cluster.cluster for cluster in clusters)}; there are "
                f"{', '.join(known_names)}{did_you_mean(self.identity or '', known_names)}"
            )
        return replace(state, clusters=tuple(cluster for cluster in narrowed if cluster.identities or cluster.guests))

    def of_plane(self, cluster: Cluster, plane: SeenControlPlane) -> tuple[Cluster, SeenControlPlane]:
        """Cluster and control plane with the selected pod alone. Raises CommandError for a pod that does not exist."""
        if self.pod is None or isinstance(plane.pods, Unread):
            return cluster, plane
        pods = {pod.name: pod for pod in known(plane.pods)}
        if self.pod not in pods:
            raise CommandError(f"there is no pod {self.pod} in {self.namespace}{did_you_mean(self.pod, pods)}")
        pod = pods[self.pod]
        own = {identity.identity for identity in _of_deployment(cluster, pod.deployment)}
        identities = tuple(
            replace(identity, mounts=tuple(mount for mount in identity.mounts if mount.deployment == pod.deployment))
            for identity in cluster.identities
            if identity.identity in own or identity.secret_provider_class in pod.classes.values()
        )
        if not identities:
            owners = dict.fromkeys(mount.deployment for identity in cluster.identities for mount in identity.mounts)
            raise CommandError(
                f"the pod {self.namespace}/{self.pod} mounts no credential of this stack; those of {cluster.cluster} "
                f"are mounted by {', '.join(owners)}"
            )
        return replace(cluster, identities=identities, guests=()), replace(plane, pods=(pod,))

    def _of_identity(self, principals: Collection[T]) -> tuple[T, ...]:
        return tuple(principal for principal in principals if self.identity in (None, principal.identity))

    def _unknown_cluster(self, state: StackState) -> str:
        if self.namespace is not None:
            name, names, kind = (self.namespace, [cluster.namespace for cluster in state.clusters], "control plane in")
        else:
            name, names, kind = (str(self.cluster), [cluster.cluster for cluster in state.clusters], "hosted cluster")
        listed = ", ".join(names) or "none"
        return f"the stack has deployed no {kind} {name}; there are {listed}{did_you_mean(name, names)}"


EVERYTHING: Final = Selection()


def _of_deployment(cluster: Cluster, deployment: str) -> tuple[Identity, ...]:
    return tuple(
        identity for identity in cluster.identities if any(mount.deployment == deployment for mount in identity.mounts)
    )
