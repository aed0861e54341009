"""Combines the mounts of several identities in one container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from identity.catalogue_rows import ControlPlaneIdentity, Mount


class MountCollisionError(ValueError):
    """Two identities need the same `place` in a container; `first` and `second` are their fields."""

    def __init__(self, first: str, second: str, place: str) -> None:
        super().__init__(f"{first} and {second} both need {place}")
        self.first, self.second, self.place = first, second, place


def side_by_side(rows: Sequence[ControlPlaneIdentity]) -> tuple[Mount, ...]:
    """One mount of each row, the first that fit together: a pod with another mount at /mnt/certs has KMS at /mnt/kms.

    Raises MountCollisionError if no choice of mounts fits.
    """
    for choice in product(*(row.mounts for row in rows)):
        if all(_shared(*pair) is None for pair in combinations(choice, 2)):
            return choice
    raise next(_collisions(rows))


def _collisions(rows: Sequence[ControlPlaneIdentity]) -> Iterator[MountCollisionError]:
    """The pairs that never fit; if every pair fits, those that do not with their first mounts."""
    pairs = list(combinations(rows, 2))
    never = [pair for pair in pairs if all(_shared(*choice) for choice in product(*(row.mounts for row in pair)))]
    for first, second in [*never, *pairs]:
        place = _shared(first.mounts[0], second.mounts[0])
        if place is not None:
            yield MountCollisionError(first.field, second.field, place)


def _shared(one: Mount, other: Mount) -> str | None:
    claims = _claims(other)
    return next((claim for claim in _claims(one) if claim in claims), None)


def _claims(mount: Mount) -> list[str]:
    """The places that the mount needs in a pod, in words; see components/kubernetes/wiring.py."""
    claims = [f"the path {mount.path}", f"a volume {mount.volume}"]
    if mount.credential_env is not None:
        claims.append(f"the variable {mount.credential_env}")
    if mount.config is not None:
        claims += [f"the path {mount.config.directory}", f"a volume {mount.config.volume}"]
        if mount.config.env is not None:
            claims.append(f"the variable {mount.config.env}")
    return claims
