"""The night in which most renewals of two hundred clusters fall due, against the limits of Graph and of a vault.

What one stack's daily run asks Azure for is measured on the real engine: once with nothing due, and once with nine
renewals. The dates are those of the product's own rule (`identity.credentials.schedule`). That the runs of 200 stacks
follow one another, eight at a time, is simulated: second by second, and as fast as the measured run's CPU time allows.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from bench.arithmetic import most_within
from bench.figures import Figure, Limit
from bench.measure import Cost, run
from bench.stacks import NO_LAG, QUICK, local_stack, plain_cluster, up
from identity.catalogue import CONTROL_PLANE
from identity.credentials import rfc3339
from identity.credentials.schedule import Delivery, ObservedSecret, Terms, decide, initial
from ops.forecast.limits import RENEWAL_WRITES, VAULT_READS, ServiceLimit
from tests.harness import LocalStack
from tests.request_count import Requests, of, requests_of, writes

CLUSTERS: Final = 200
_AT_ONCE: Final = 8
_LIFETIME, _RENEW_BEFORE = 90, 45  # days, the defaults
# Long enough for every identity's first two renewals.
_DAYS: Final = 100
_DAY: Final = timedelta(days=1)
_START: Final = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
_IDENTITIES: Final = [row for row in CONTROL_PLANE if row.enabled_by_default]


@dataclass(frozen=True)
class DailyRun:
    """A daily run of one stack: its requests, and the CPU seconds of its engine."""

    requests: Requests
    seconds: float


@dataclass(frozen=True)
class Night:
    """The busiest night: its renewals, and the most requests that fall into one window of each limit."""

    renewals: int
    graph_writes: int
    vault_requests: int


def night() -> Iterator[Figure]:
    """How far the busiest night stays below the limits, with the dates spread and without."""
    idle, renewing = _measured()
    spread = simulated(nights(_secret_names()), idle, renewing)
    together = simulated(nights([PUNCTUAL] * CLUSTERS * len(_IDENTITIES)), idle, renewing)
    calls = ", ".join(f"{service} {of(renewing.requests, service)}" for service in ("arm", "graph", "keyvault"))
    note = f"measured: a run with nine renewals asks {calls} times in {renewing.seconds:.1f} s of CPU"
    yield Figure(
        name=f"{CLUSTERS} clusters of one day: renewals of the busiest night",
        unit="",
        ours=spread.renewals,
        peer=together.renewals,
        peer_name="all dates alike",
        limit=Limit("at most", 0.2),
        note=f"{len(_IDENTITIES)} identities each, {_DAYS} days of the schedule's own rule",
    )
    yield Figure(
        name=f"{CLUSTERS} clusters: writes at Graph in {_window(RENEWAL_WRITES)} s of that night",
        unit="",
        ours=spread.graph_writes,
        peer=RENEWAL_WRITES.maximum,
        peer_name=f"Graph's limit; all dates alike: {together.graph_writes}",
        limit=Limit("at most", 1),
        note=note,
    )
    yield Figure(
        name=f"{CLUSTERS} clusters: requests to the vault in {_window(VAULT_READS)} s of that night",
        unit="",
        ours=spread.vault_requests,
        peer=VAULT_READS.maximum,
        peer_name=f"the vault's limit; all dates alike: {together.vault_requests}",
        limit=Limit("at most", 1),
        note=f"{note}; secrets are written by ARM, which counts as a request to the vault, too",
    )


PUNCTUAL: Final = "hc1185901"
"""The one of a million names whose identity is due at the latest moment, to the second."""


def nights(names: Sequence[str]) -> Mapping[int, Counter[int]]:
    """By day: how many identities each cluster renews in the run of that day; `names` are the secrets', by cluster."""
    found: dict[int, Counter[int]] = {day: Counter() for day in range(1, _DAYS + 1)}
    for index, name in enumerate(names):
        terms = Terms(lifetime_days=_LIFETIME, renew_before_days=_RENEW_BEFORE, secret_name=name)
        slots = initial(_START, _LIFETIME, ObservedSecret()).slots
        vault = ObservedSecret(True, Delivery("a", 1, _START))
        for day, renewed in found.items():
            now = _START + day * _DAY
            decision = decide(slots, vault, None, now, terms)
            if decision.why is not None:
                slots = decision.slots
                vault = replace(vault, delivery=Delivery(slots.current, slots.issued.generation, now))
                renewed[index // len(_IDENTITIES)] += 1
    return found


def simulated(by_day: Mapping[int, Counter[int]], idle: DailyRun, renewing: DailyRun) -> Night:
    """The night with most renewals: all clusters' runs, eight at a time, each asking for everything at its end."""
    renewed = max(by_day.values(), key=lambda day: day.total())
    free, graph, vault = [0.0] * _AT_ONCE, [], []
    heapq.heapify(free)
    for cluster in range(CLUSTERS):
        part = renewed[cluster] / len(_IDENTITIES)
        ends = heapq.heappop(free) + idle.seconds + part * max(0.0, renewing.seconds - idle.seconds)
        heapq.heappush(free, ends)
        graph.append((ends, _between(idle, renewing, part, lambda found: writes(found, "graph"))))
        vault.append((ends, _between(idle, renewing, part, _to_the_vault)))
    return Night(renewed.total(), most_within(graph, _window(RENEWAL_WRITES)), most_within(vault, _window(VAULT_READS)))


def _window(limit: ServiceLimit) -> int:
    assert limit.seconds is not None
    return limit.seconds


def _between(idle: DailyRun, renewing: DailyRun, part: float, number: Callable[[Requests], int]) -> int:
    least, most = number(idle.requests), number(renewing.requests)
    return round(least + part * (most - least))


def _to_the_vault(requests: Requests) -> int:
    return of(requests, "keyvault") + writes(requests, "arm")


def _secret_names() -> list[str]:
    return [f"{row.secret_stem}-c{cluster}-json" for cluster in range(CLUSTERS) for row in _IDENTITIES]


def _measured() -> tuple[DailyRun, DailyRun]:
    """A run of one cluster's stack with nothing due, and one in which every identity is renewed a second time.

    The first renewal of all removes no certificate, and so asks for less. Certificates of two years that are renewed
    each day are valid now, which Entra ID wants.
    """
    born = datetime.now(UTC).replace(microsecond=0) - 3 * _DAY
    with local_stack(**NO_LAG) as stack:
        life = {"lifetimeDays": 730, "renewBeforeDays": 729}
        settings = {**QUICK, "credentials": {**QUICK["credentials"], **life}}
        with stack.configured(**settings, hostedClusters=[plain_cluster(stack)]):
            _run(stack, born)
            _run(stack, born + _DAY)
            idle = _run(stack, born + 1.5 * _DAY)
            renewing = _run(stack, born + 2 * _DAY)
    assert writes(renewing.requests, "graph") >= 2 * len(_IDENTITIES), renewing.requests
    assert writes(idle.requests, "graph") == 0, idle.requests
    return idle, renewing


def _run(stack: LocalStack, now: datetime) -> DailyRun:
    count = requests_of(stack)
    variables = {**stack.variables, "IDSTACK_CLOCK": rfc3339.render(now)}
    with count.following():
        cost: Cost = run(up(stack.name), directory=stack.root, environment=variables)
    return DailyRun(count.requests, cost.cpu)
