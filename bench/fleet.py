"""What a fleet costs: `idstack fleet up` of a shared stack and of more and more clusters' stacks, eight at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from bench.arithmetic import growth_exponent
from bench.figures import Figure, Limit
from bench.measure import Cost, run
from bench.stacks import NO_LAG, local_stack
from tests.harness import LocalStack
from tests.request_count import requests_of

# What a run of everything measures; `--fleet 200` goes up to the sizes below.
SMALL: Final = (1, 4, 8)
SIZES: Final = (1, 4, 8, 10, 50, 100, 200)
_AT_ONCE: Final = 8
_FLAT: Final = 1.1
_MORE_MEMORY: Final = 1.2
_OF_EVERY_STACK: Final = (
    "cloud",
    "tenantId",
    "subscriptionId",
    "location",
    "resourceGroup",
    "protect",
    "managementCluster",
)
# A certificate is known to Entra ID at once, and no probe runs: each is a process that stays.
_QUICK: Final[dict[str, Any]] = {
    "clusterSide": "hypershift",
    "credentials": {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 60}},
}


@dataclass(frozen=True)
class _Point:
    """A first `fleet up` of so many clusters: what all its processes cost, and its requests to Azure."""

    clusters: int
    cost: Cost
    requests: int
    again: Cost


def sizes_up_to(largest: int) -> Sequence[int]:
    """The sizes up to this one; a run of everything has the small ones alone."""
    return [size for size in SIZES if size <= largest]


def fleet(sizes: Sequence[int] = SMALL) -> Iterator[Figure]:
    """CPU, memory and requests of fleets, each on a local cloud of its own, and how they grow."""
    points: list[_Point] = []
    for size in sizes:
        points.append(point := _measured(size))
        first, clusters = points[0], "1 cluster" if size == 1 else f"{size} clusters"
        yield Figure(
            name=f"fleet of {clusters}: CPU for each, with its part of the shared stack",
            unit="s",
            ours=point.cost.cpu / size,
            peer=first.cost.cpu / first.clusters,
            peer_name=f"a fleet of {first.clusters}",
            note=f"wall {point.cost.wall:.0f} s, {_AT_ONCE} at a time; idstack, engine, program and plugins",
        )
        yield Figure(
            name=f"fleet of {clusters}: largest process",
            unit="MB",
            ours=point.cost.peak,
            peer=first.cost.peak,
            peer_name=f"a fleet of {first.clusters}",
            limit=Limit("at most", _MORE_MEMORY),
        )
        yield Figure(
            name=f"fleet of {clusters}: requests to Azure for each",
            unit="",
            ours=point.requests / size,
            peer=first.requests / first.clusters,
            peer_name=f"a fleet of {first.clusters}",
            note=f"{point.requests} in all, the shared stack's too, out of the local cloud's log",
        )
        yield Figure(
            name=f"fleet of {clusters}: CPU of a second fleet up, which starts no engine for an unchanged stack",
            unit="s",
            ours=point.again.cpu,
            peer=point.cost.cpu,
            peer_name="the first one",
        )
    if len(points) > 1:
        yield _exponent("CPU", points, [point.cost.cpu for point in points])
        yield _exponent("requests to Azure", points, [float(point.requests) for point in points])


def _exponent(what: str, points: Sequence[_Point], costs: Sequence[float]) -> Figure:
    sizes = [point.clusters for point in points]
    return Figure(
        name=f"growth of a fleet's {what}",
        unit="",
        ours=growth_exponent(sizes, costs),
        peer=1,
        peer_name="linear growth",
        limit=Limit("at most", _FLAT),
        note=f"p of cost ~ clusters^p, fitted to {', '.join(map(str, sizes))} clusters",
    )


def _measured(size: int) -> _Point:
    with local_stack(**NO_LAG) as stack:
        write_fleet(stack, size)
        command = (stack.python, "-m", "ops", "fleet", "up", "--parallel", str(_AT_ONCE))
        count = requests_of(stack)
        with count.following():
            cost = run(command, directory=stack.root, environment=stack.variables)
        again = run(command, directory=stack.root, environment=stack.variables)
        return _Point(size, cost, count.total, again)


def write_fleet(stack: LocalStack, size: int) -> None:
    """The fleet file of so many copies of the local stack's cluster, and the file of each of its stacks.

    Every identity is an Entra application: the imported one cannot be the identity of several clusters.
    """
    [cluster] = stack.configuration("hostedClusters")
    own = {"infraID": "{cluster}-infra", "issuerURL": "https://{cluster}.blob.core.windows.net/{cluster}"}
    plain = {key: value for key, value in cluster.items() if key not in ("name", "identities")}
    environment = {
        "name": "local",
        "settings": {key: stack.configuration(key) for key in _OF_EVERY_STACK} | _QUICK,
        "shared": {"settings": {"vault": stack.configuration("vault")}},
        "clusterDefaults": {"hostedCluster": plain | own},
        "clusters": [{"name": f"c{number}"} for number in range(size)],
    }
    text = yaml.safe_dump({"environments": [environment]}, sort_keys=False)
    (stack.root / "fleet.yaml").write_text(text, encoding="utf-8")
    stack.idstack("fleet", "prepare")
