"""Hosted clusters that the head has in another stack than the base: `idstack split` moves them before any `up`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ops.rehearsal.configuration import Copied, Names


@dataclass(frozen=True)
class ClusterMove:
    """A cluster that leaves the stack `source` for `target`, which shares its vault; the stacks' own names."""

    cluster: str
    source: str
    target: str

    @property
    def command(self) -> str:
        """What moves it."""
        return f"idstack split --stack {self.source} --cluster {self.cluster} --to {self.target}"


def moves(before: Sequence[Copied], after: Sequence[Copied], names: Names) -> list[ClusterMove]:
    """What `idstack up` refuses without a split, of the stacks `before` and `after` the change.

    A cluster that goes to a stack with another vault is none: it gets new credentials there, and that is rehearsed.
    """
    return list(_moves(before, after, names))


def _moves(before: Sequence[Copied], after: Sequence[Copied], names: Names) -> Iterator[ClusterMove]:
    known, clusters = ({each.stack: _clusters(each) for each in copies} for copies in (before, after))
    for copy in after:
        for source, had in known.items():
            if source in clusters and copy.shared_stack == names.local(source):
                gone = had - clusters[source]
                new = clusters[copy.stack] - known.get(copy.stack, set())
                yield from (ClusterMove(cluster, source, copy.stack) for cluster in sorted(gone & new))


def _clusters(copy: Copied) -> set[str]:
    return {each.name for each in copy.settings.hosted_clusters}
