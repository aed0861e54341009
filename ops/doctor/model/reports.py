"""The probes' reports about one identity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.world.expected import ExpectedMount, Identity
from ops.world.seen import NotReadError, entry, known
from ops.world.stack_world import SeenPod, SeenReport, StackWorld

# Of `identity.credentials.document.InvalidCredentialError`: the file is there, and its content is refused.
REFUSED_DOCUMENT: Final = "credential document:"


def reports_of(world: StackWorld, identity: Identity) -> Iterator[tuple[ExpectedMount, SeenPod, SeenReport]]:
    """The report of each probe that is not ready, and of each that has one to read.

    A probe that is ready has signed in and made its call, so that its report may stay unread. Raises NotReadError for
    any other one without a report, and for HyperShift's own pods, which have none.
    """
    if known(world.state).cluster_side == "hypershift":
        raise NotReadError("the pods are HyperShift's, which report no sign-in: their logs and the conditions do")
    seen = entry(world.control_planes, identity.cluster)
    for mount in identity.mounts:
        own = [each for each in known(seen.pods) if each.deployment == mount.deployment]
        for pod in sorted(own, key=lambda each: each.created)[-1:]:
            if pod.is_ready and not isinstance(seen.reports.get(pod.name), SeenReport):
                continue
            yield mount, pod, entry(seen.reports, pod.name)
