"""What a fleet costs: `idstack fleet up` of a shared stack and of ever more clusters' stacks, eight at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import yaml

from bench.arithmetic import growth_exponent
from bench.figures import Figure, Limit
from bench.measure import Cost, run
from bench.stacks import NO_LAG, OF_EVERY_STACK, QUICK, local_stack, plain_cluster
from tests.harness import LocalStack
from tests.request_count import requests_of

# What a run of everything measures; `--fleet 200` goes up to the sizes below.
SMALL: Final = (1, 4, 8)
SIZES: Final = (1, 4, 8, 10, 50, 100, 200)
_AT_ONCE: Final = 8
_FLAT: Final = 1.1
# The engine reads the states of all stacks to list them, once in each `fleet up`.
_MORE_MEMORY: Final = 2.0


@dataclass(frozen=True)
class _Step:
    """A `fleet up` that makes the stacks of `added` clusters: what all its processes cost, and its requests to Azure.

    `again` is the cost of one more, without a change.
    """

    clusters: int
    added: int
    cost: Cost
    requests: int
    again: Cost

    @property
    def name(self) -> str:
        """The growth that it is, for people."""
        return f"{self.clusters} cluster{'s' if self.clusters > 1 else ''}, {self.added} of them new"


def fleet(sizes: Sequence[int] = SMALL) -> Iterator[Figure]:
    """CPU, memory and requests while a fleet grows from one size to the next on one local cloud."""
    steps: list[_Step] = []
    with local_stack(**NO_LAG) as stack:
        for size in sizes:
            steps.append(step := _grown(stack, size, steps[-1].clusters if steps else 0))
            yield from _figures(step, steps[0])
    if len(steps) > 1:
        yield _exponent("CPU", steps, [step.cost.cpu for step in steps])
        yield _exponent("requests to Azure", steps, [float(step.requests) for step in steps])


def _figures(step: _Step, first: _Step) -> Iterator[Figure]:
    peer = "the first one, with the shared stack"
    yield Figure(
        name=f"fleet of {step.name}: CPU for each of those",
        unit="s",
        ours=step.cost.cpu / step.added,
        peer=first.cost.cpu / first.added,
        peer_name=peer,
        note=f"wall {step.cost.wall:.0f} s, {_AT_ONCE} at a time; idstack, engine, program and plugins",
    )
    yield Figure(
        name=f"fleet of {step.name}: largest process",
        unit="MB",
        ours=step.cost.peak,
        peer=first.cost.peak,
        peer_name=peer,
        limit=Limit("at most", _MORE_MEMORY),
    )
    yield Figure(
        name=f"fleet of {step.name}: requests to Azure for each of those",
        unit="",
        ours=step.requests / step.added,
        peer=first.requests / first.added,
        peer_name=peer,
        note=f"{step.requests} in all, out of the local cloud's log",
    )
    yield Figure(
        name=f"fleet of {step.name}: CPU of a second fleet up, which starts no engine for an unchanged stack",
        unit="s",
        ours=step.again.cpu,
        peer=step.cost.cpu,
        peer_name="the first one",
    )


def _exponent(what: str, steps: Sequence[_Step], costs: Sequence[float]) -> Figure:
    sizes = [step.clusters for step in steps]
    return Figure(
        name=f"growth of a fleet's {what}",
        unit="",
        ours=growth_exponent(sizes, list(accumulate(costs))),
        peer=1,
        peer_name="linear growth",
        limit=Limit("at most", _FLAT),
        note=f"p of cost ~ clusters^p, fitted to {', '.join(map(str, sizes))} clusters, all that each took to make",
    )


def _grown(stack: LocalStack, size: int, before: int) -> _Step:
    write_fleet(stack, size)
    command = (stack.python, "-m", "ops", "fleet", "up", "--parallel", str(_AT_ONCE))
    count = requests_of(stack)
    with count.following():
        cost = run(command, directory=stack.root, environment=stack.variables)
    again = run(command, directory=stack.root, environment=stack.variables)
    return _Step(size, size - before, cost, count.total, again)


def write_fleet(stack: LocalStack, size: int) -> None:
    """The fleet file of so many copies of the local stack's cluster, and the file of each of its stacks."""
    own = {"infraID": "{cluster}-infra", "issuerURL": "https://{cluster}.blob.core.windows.net/{cluster}"}
    cluster = {key: value for key, value in plain_cluster(stack).items() if key != "name"}
    environment = {
        "name": "local",
        "settings": {key: stack.configuration(key) for key in OF_EVERY_STACK} | QUICK,
        "shared": {"settings": {"vault": stack.configuration("vault")}},
        "clusterDefaults": {"hostedCluster": cluster | own},
        "clusters": [{"name": f"c{number}"} for number in range(size)],
    }
    text = yaml.safe_dump({"environments": [environment]}, sort_keys=False)
    (stack.root / "fleet.yaml").write_text(text, encoding="utf-8")
    stack.idstack("fleet", "prepare")
