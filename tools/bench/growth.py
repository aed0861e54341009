"""What many hosted clusters cost: in one stack, and with a stack for each beside a shared one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from tests.harness import LocalStack
from tools.bench.figures import Figure, Limit, growth_exponent
from tools.bench.measure import Cost, run
from tools.bench.stacks import NO_LAG, local_stack, up

# What a run of everything measures; 20 clusters, with `--clusters 20`, take a quarter of an hour more.
SMALL: Final = (1, 5, 10)
SIZES: Final = (*SMALL, 20)
_AT_ONCE: Final = 4
# Settings of stacks that share a local cloud.
_OF_EVERY_STACK: Final = (
    "cloud",
    "tenantId",
    "subscriptionId",
    "location",
    "resourceGroup",
    "protect",
    "managementCluster",
)
# A certificate is known to Entra ID at once, and no probe runs: each is a process that stays, and would be measured.
_QUICK: Final[dict[str, Any]] = {
    "clusterSide": "hypershift",
    "credentials": {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 60}},
}


@dataclass(frozen=True)
class _Point:
    clusters: int
    together: Cost
    apart: Cost


def growth(sizes: Sequence[int] = SMALL) -> Iterator[Figure]:
    """CPU and memory of the first `up` with so many clusters: engine, program and plugins.

    The clusters are complete but for the cluster side, gates ask for one sign-in, and Azure is consistent at once.
    """
    points = []
    for size in sizes:
        points.append(point := _Point(size, _together(size), _apart(size)))
        clusters = "1 cluster" if size == 1 else f"{size} clusters"
        yield Figure(
            name=f"{clusters}: CPU with a stack each",
            unit="s",
            ours=point.apart.cpu,
            peer=point.together.cpu,
            peer_name="all in one stack",
            limit=Limit("at most", 1) if size == max(sizes) > 1 else None,
            note=f"wall {point.apart.wall:.0f} s, {_AT_ONCE} at a time, against {point.together.wall:.0f} s",
        )
        yield Figure(
            name=f"{clusters}: largest process with a stack each",
            unit="MB",
            ours=point.apart.peak,
            peer=point.together.peak,
            peer_name="all in one stack",
        )
    if len(points) > 1:
        yield from _exponents(points)


def _exponents(points: Sequence[_Point]) -> Iterator[Figure]:
    sizes = [point.clusters for point in points]
    apart = growth_exponent(sizes, [point.apart.cpu for point in points])
    together = growth_exponent(sizes, [point.together.cpu for point in points])
    note = f"p of CPU ~ clusters^p, fitted to {', '.join(map(str, sizes))} clusters"
    yield Figure(
        name="growth of a stack each",
        unit="",
        ours=apart,
        peer=1,
        peer_name="linear growth",
        limit=Limit("at most", 1.1),
        note=note,
    )
    yield Figure(name="growth of one stack", unit="", ours=together, peer=1, peer_name="linear growth", note=note)


def _together(size: int) -> Cost:
    with local_stack(**NO_LAG) as stack, stack.configured(**_QUICK, hostedClusters=_clusters(stack, size)):
        return _up(stack)


def _apart(size: int) -> Cost:
    """A shared stack, then one for each cluster side by side: CPU of all, the largest peak, the time of both."""
    with local_stack(**NO_LAG) as stack:
        clusters = _clusters(stack, size)
        settings = {key: stack.configuration(key) for key in _OF_EVERY_STACK} | _QUICK
        with stack.configured(**_QUICK, hostedClusters=[]):
            shared = _up(stack)
        stacks = [
            stack.beside(
                f"local-{cluster['name']}",
                **settings,
                sharedStack=f"organization/idstack/{stack.name}",
                hostedClusters=[cluster],
            )
            for cluster in clusters
        ]
        begun = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            costs = [shared, *threads.map(_up, stacks)]
        return Cost(
            user=sum(cost.user for cost in costs),
            system=sum(cost.system for cost in costs),
            wall=shared.wall + time.monotonic() - begun,
            peak=max(cost.peak for cost in costs),
        )


def _clusters(stack: LocalStack, size: int) -> list[dict[str, Any]]:
    """So many copies of the hosted cluster, with names of their own and an Entra application for every identity.

    The imported identity cannot be that of several clusters.
    """
    [cluster] = stack.configuration("hostedClusters")
    plain = {key: value for key, value in cluster.items() if key != "identities"}
    return [
        {**plain, "name": name, "infraID": f"{name}-infra", "issuerURL": f"https://{name}.blob.core.windows.net/{name}"}
        for name in (f"c{number}" for number in range(size))
    ]


def _up(stack: LocalStack) -> Cost:
    """The first `up`."""
    return run(up(stack.name), directory=stack.root, environment=stack.variables)
