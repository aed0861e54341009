"""Hosted clusters that the head has in another stack than the base: they move before any `up`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ops.rehearsal.configuration import StackCopy


@dataclass(frozen=True)
class ClusterMove:
    """A cluster that moves from the stack `source` to `target`, which shares its vault; the stacks' own names."""

    cluster: str
    source: str
    target: str


def moves(before: Sequence[StackCopy], after: Sequence[StackCopy]) -> Iterator[ClusterMove]:
    """The moves that `idstack up` refuses before the state has moved, by the stacks `before` and `after` the change.

    A cluster of a stack with another vault does not move: it gets new credentials there, and that is rehearsed.
    """
    before_clusters, clusters = ({copy.stack: _clusters(copy) for copy in copies} for copies in (before, after))
    for copy in after:
        for source in before:
            if source.stack in clusters and copy.shared_stack == source.name:
                removed = before_clusters[source.stack] - clusters[source.stack]
                new = clusters[copy.stack] - before_clusters.get(copy.stack, set())
                yield from (ClusterMove(cluster, source.stack, copy.stack) for cluster in sorted(removed & new))


def _clusters(copy: StackCopy) -> set[str]:
    return {hosted_cluster.name for hosted_cluster in copy.settings.hosted_clusters}
