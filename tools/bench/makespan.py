"""How long an `up` takes when Azure is slow, against the longest chain of operations that wait for each other."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.harness import LocalStack
from tools.bench.figures import Figure, Limit, critical_path, most_at_once
from tools.bench.measure import in_turn
from tools.bench.stacks import NO_LAG, local_stack, up

_ROUNDS: Final = 2
_LATENCY: Final = 1.0  # seconds for each request to Azure
_SERVICES: Final = ("arm", "graph", "keyvault", "entra")
# `az` calls of HyperShift's contrib/managed-azure for one cluster, all in sequence: setup_MIv3_kv.sh 40,
# setup_dataplane_identities.sh 6. They assign no role to the identities.
_AZ_CALLS: Final = 46

_GATE: Final = "idstack:index:SignInGate"
_CERTIFICATE: Final = "idstack:index:Certificate"
# Requests that a resource's creation makes one after another (cloud/tests/coverage/test_operations.py counts them).
OPERATIONS: Final[Mapping[str, int]] = {
    "azuread:index/application:Application": 5,
    "azuread:index/servicePrincipal:ServicePrincipal": 5,
    "azuread:index/applicationCertificate:ApplicationCertificate": 8,
    "idstack:index:CredentialSecret": 2,
}
ARM_OPERATIONS: Final = 3
"""Of every azure-native resource: a read before, the write, a read after it."""
SIGN_IN_OPERATIONS: Final = 2
"""Of each sign-in of a gate: the authority's metadata, the token."""

Spans = Mapping[str, tuple[float, float]]
"""By URN: when the creation of a resource began and ended, in seconds."""


@dataclass(frozen=True)
class _Run:
    spans: Spans
    resources: Sequence[Mapping[str, Any]]

    @property
    def makespan(self) -> float:
        """Seconds from the first provider's call to the last one's end."""
        return max(end for _, end in self.spans.values()) - min(begin for begin, _ in self.spans.values())


def makespan() -> Iterator[Figure]:
    """`up` of a hosted cluster at each latency. The stack's Azure side alone, as the scripts create it."""
    runs = in_turn(_ROUNDS, lambda: _run(0.0), lambda: _run(_LATENCY))
    quick, slow = (min(series, key=lambda run: run.makespan) for series in runs)
    weights = {resource["urn"]: _LATENCY * operations(resource) for resource in slow.resources}
    for urn, weight in weights.items():
        begin, end = slow.spans.get(urn, (0.0, weight))
        assert end - begin >= 0.98 * weight, f"{urn} took less than its {weight:g} operations: the table is wrong"
    path, chain = critical_path(_needs(slow.resources), weights)
    grown = slow.makespan - quick.makespan
    names = " -> ".join(urn.rpartition("::")[2] for urn in chain if weights.get(urn))
    yield Figure(
        name="one cluster at 1 s for each Azure operation, less the same without latency",
        unit="s",
        ours=grown,
        peer=path,
        peer_name=f"the critical path: {names}",
        limit=Limit("at most", 1.15),
        note=(
            f"from the first to the last call of a provider, least of {_ROUNDS} runs in turn; "
            f"{sum(weights.values()):g} operations in all"
        ),
    )
    yield Figure(
        name="one cluster, with the time of the machine itself",
        unit="s",
        ours=slow.makespan,
        peer=path,
        peer_name="the critical path",
    )
    yield Figure(
        name="one cluster, beside the scripts",
        unit="s",
        ours=grown,
        peer=_AZ_CALLS * _LATENCY,
        peer_name=f"{_AZ_CALLS} az calls in sequence, which create fewer things",
    )
    certificates = [slow.spans[resource["urn"]] for resource in slow.resources if resource["type"] == _CERTIFICATE]
    yield Figure(
        name="certificates that are issued at once during the up",
        unit="calls",
        ours=most_at_once(certificates),
        peer=1,
        peer_name="one after another",
        limit=Limit("at least", 2),
        note=f"of {len(certificates)}, as the engine called the plugin",
    )


def operations(resource: Mapping[str, Any]) -> int:
    """Requests to Azure that the creation of this resource of the state makes one after another."""
    token = resource["type"]
    if token == _GATE:
        return SIGN_IN_OPERATIONS * int(resource["inputs"]["successes"])
    return ARM_OPERATIONS if token.startswith("azure-native:") else OPERATIONS.get(token, 0)


def _needs(resources: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What each resource waits for: dependencies, parent, provider."""
    return {
        resource["urn"]: [
            *resource.get("dependencies", []),
            *([resource["parent"]] if "parent" in resource else []),
            *([resource["provider"].rpartition("::")[0]] if resource.get("provider") else []),
        ]
        for resource in resources
    }


def _run(latency: float) -> _Run:
    faults = {**NO_LAG, "latency": dict.fromkeys(_SERVICES, latency)}
    with local_stack(**faults) as stack, stack.configured(clusterSide="hypershift"):
        spans = _created(stack)
        return _Run(spans, json.loads(stack.pulumi("stack", "export").stdout)["deployment"]["resources"])


def _created(stack: LocalStack) -> Spans:
    """Bring the stack up and follow the engine's events, whose own times are whole seconds."""
    log = stack.state / "events.jsonl"
    environment = {**stack.variables, "PULUMI_DEBUG_COMMANDS": "true"}
    with subprocess.Popen(
        up(stack.name, "--event-log", str(log)),
        cwd=stack.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        begun: dict[str, float] = {}
        ended: dict[str, float] = {}
        for at, event in _events(log, process):
            for kind, times in (("resourcePreEvent", begun), ("resOutputsEvent", ended)):
                step = event.get(kind, {}).get("metadata", {})
                if step.get("op") == "create" and _is_provided(step["type"]):
                    times[step["urn"]] = at
    assert process.returncode == 0, f"pulumi up: code {process.returncode}"
    return {urn: (begun[urn], end) for urn, end in ended.items()}


def _is_provided(token: str) -> bool:
    """Whether a provider plugin is called for it: the engine makes providers and components itself."""
    return token.startswith("idstack:index:") or not token.startswith(("pulumi:", "idstack:"))


def _events(log: Path, process: subprocess.Popen[bytes]) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """The events of a log that is being written, each with the time at which it was seen."""
    while not log.exists() and process.poll() is None:
        time.sleep(0.01)
    with log.open(encoding="utf-8") as lines:
        text = ""
        while True:
            ended = process.poll() is not None
            while part := lines.readline():
                text += part
                if text.endswith("\n"):
                    yield time.monotonic(), json.loads(text)
                    text = ""
            if ended:
                return
            time.sleep(0.01)
