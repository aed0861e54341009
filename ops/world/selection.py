"""What a person on call names: a hosted cluster, an identity or a pod. The rest is neither read nor checked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

from identity.similar import did_you_mean
from ops.stack.errors import CommandError
from ops.world.expected import Cluster, GrantedPrincipal, Identity, StackState
from ops.world.seen import Unread, known
from ops.world.stack_world import SeenControlPlane

T = TypeVar("T", bound=GrantedPrincipal)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The names; without any, everything. A pod goes with no other name."""

    cluster: str | None = None
    identity: str | None = None
    namespace: str | None = None
    pod: str | None = None

    @classmethod
    def of(cls, cluster: str | None, identity: str | None, pod: str | None) -> Self:
        """Read `<identity>` or `<cluster>/<identity>`, and `<namespace>/<name>`. Raises ValueError with the reason."""
        if pod is not None:
            namespace, _, name = pod.partition("/")
            if cluster or identity:
                raise ValueError("--pod names the cluster and its identities already: leave out the other option")
            if not namespace or not name or "/" in name:
                raise ValueError(f"--pod: found {pod!r}; accepted: <namespace>/<name>")
            return cls(namespace=namespace, pod=name)
        of_identity, _, field = (identity or "").rpartition("/")
        if of_identity and cluster not in (None, of_identity):
            raise ValueError(f"--identity {identity} is not of the cluster {cluster}")
        return cls(cluster=of_identity or cluster, identity=field or None)

    @property
    def is_everything(self) -> bool:
        """Whether nothing is named."""
        return self == EVERYTHING

    def of_state(self, state: StackState) -> StackState:
        """The state with what is named alone. Raises CommandError for a name that the stack does not have.

        Of a pod that belongs to no Deployment of the stack's identities, all identities of the cluster: `of_plane`
        finds those that the pod mounts.
        """
        if self.is_everything or not state.is_up:
            return state
        clusters = [each for each in state.clusters if self._has(each)]
        if not clusters:
            raise CommandError(self._unknown_cluster(state))
        if self.pod is not None:
            deployment = self.pod.rsplit("-", 2)[0]
            own = [replace(each, identities=_of_deployment(each, deployment), guests=()) for each in clusters]
            return replace(state, clusters=tuple(own if any(each.identities for each in own) else clusters))
        narrowed = [
            replace(each, identities=self._named(each.identities), guests=self._named(each.guests)) for each in clusters
        ]
        if not any(each.identities or each.guests for each in narrowed):
            known_names = dict.fromkeys(
                each.identity for cluster in clusters for each in (*cluster.identities, *cluster.guests)
            )
            raise CommandError(
                f"no identity {self.identity} in {', '.join(each.cluster for each in clusters)}; there are "
                f"{', '.join(known_names)}{did_you_mean(self.identity or '', known_names)}"
            )
        return replace(state, clusters=tuple(each for each in narrowed if each.identities or each.guests))

    def of_plane(self, cluster: Cluster, plane: SeenControlPlane) -> tuple[Cluster, SeenControlPlane]:
        """Cluster and control plane with the named pod alone. Raises CommandError for a pod that is not there."""
        if self.pod is None or isinstance(plane.pods, Unread):
            return cluster, plane
        pods = {each.name: each for each in known(plane.pods)}
        if self.pod not in pods:
            raise CommandError(f"there is no pod {self.pod} in {self.namespace}{did_you_mean(self.pod, pods)}")
        pod = pods[self.pod]
        own = {each.identity for each in _of_deployment(cluster, pod.deployment)}
        identities = tuple(
            replace(each, mounts=tuple(mount for mount in each.mounts if mount.deployment == pod.deployment))
            for each in cluster.identities
            if each.identity in own or each.secret_provider_class in pod.classes.values()
        )
        if not identities:
            owners = dict.fromkeys(mount.deployment for each in cluster.identities for mount in each.mounts)
            raise CommandError(
                f"the pod {self.namespace}/{self.pod} mounts no credential of this stack; those of {cluster.cluster} "
                f"are mounted by {', '.join(owners)}"
            )
        return replace(cluster, identities=identities, guests=()), replace(plane, pods=(pod,))

    def _has(self, cluster: Cluster) -> bool:
        return self.cluster in (None, cluster.cluster) and self.namespace in (None, cluster.namespace)

    def _named(self, principals: Collection[T]) -> tuple[T, ...]:
        return tuple(each for each in principals if self.identity in (None, each.identity))

    def _unknown_cluster(self, state: StackState) -> str:
        if self.namespace is not None:
            name, known_names, what = self.namespace, [each.namespace for each in state.clusters], "control plane in"
        else:
            name, known_names, what = str(self.cluster), [each.cluster for each in state.clusters], "hosted cluster"
        there = ", ".join(known_names) or "none"
        return f"the stack has deployed no {what} {name}; there are {there}{did_you_mean(name, known_names)}"


EVERYTHING: Final = Selection()


def _of_deployment(cluster: Cluster, deployment: str) -> tuple[Identity, ...]:
    return tuple(each for each in cluster.identities if any(mount.deployment == deployment for mount in each.mounts))
