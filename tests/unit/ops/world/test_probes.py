"""Reading the probes: over HTTP, from a Kubernetes API and from the pods it names."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from localcloud.testing.hosts import Serve
from ops.world.cluster_state import ProbeResult, ProbeResults, ProbesUnreachableError, local_probes
from tests.unit.ops.stacks import (
    NAMESPACE,
    FakeCluster,
    answered,
    local_environment,
    probe,
    refused,
    report,
    running,
    write_kubeconfig,
)

INGRESS = (NAMESPACE, "probe-ingress")
Read = Callable[[], ProbeResults]


@pytest.fixture
def cluster() -> FakeCluster:
    """A cluster without a pod."""
    return FakeCluster()


@pytest.fixture
def answers(cluster: FakeCluster, serve_plain: Serve, tmp_path: Path) -> Read:
    """Reads the probes of the cluster."""
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", serve_plain(cluster.app()))
    return lambda: local_probes(local_environment(tmp_path, kubeconfig))


def test_a_ready_probes_report_is_read_at_its_pods_address(
    cluster: FakeCluster, answers: Read, serve_plain: Serve
) -> None:
    cluster.add_pod("probe-ingress", **running(serve_plain(probe(report()))))
    found = answers().of(*INGRESS)
    assert found == answered("probe-ingress-0", report())
    assert found.is_ready
    assert found.to_json()["report"] == report()
    assert cluster.selectors == ["app.kubernetes.io/name=credential-probe"]
    not_registered = refused("AADSTS700027: not registered")
    cluster.add_pod("probe-kms", **running(serve_plain(probe(not_registered))))
    answered_503 = answers().of(NAMESPACE, "probe-kms")
    assert (answered_503, answered_503.is_ready) == (answered("probe-kms-1", not_registered), False)


def test_every_probe_has_its_own_report_in_its_own_namespace(
    cluster: FakeCluster, answers: Read, serve_plain: Serve
) -> None:
    cluster.add_pod("probe-ingress", **running(serve_plain(probe(report()))))
    other = running(serve_plain(probe(report("/mnt/certs/ingress-hc2-json"))))
    cluster.add_pod("probe-ingress", namespace="clusters-hc2", **other)
    cluster.add_pod("probe-kms-2", **running(serve_plain(probe(report("/mnt/kms/kms-hc1-json")))))
    found = answers()
    assert found.of("clusters-hc2", "probe-ingress").to_json()["report"] == report("/mnt/certs/ingress-hc2-json")
    assert found.of(NAMESPACE, "probe-kms-2").to_json()["report"] == report("/mnt/kms/kms-hc1-json")
    assert found.of(*INGRESS).to_json()["report"] == report()


def test_of_two_pods_the_younger_one_speaks_and_one_that_is_going_does_not(
    cluster: FakeCluster, answers: Read, serve_plain: Serve
) -> None:
    new, old = running(serve_plain(probe(report("/new")))), running(serve_plain(probe(report("/old"))))
    cluster.add_pod("probe-ingress", created="2026-11-21T17:00:00Z", **new)
    cluster.add_pod("probe-ingress", created="2026-11-21T16:00:00Z", **old)
    cluster.add_pod("probe-ingress", created="2026-11-21T18:00:00Z", deletionTimestamp="2026-11-21T18:01:00Z", **old)
    assert answers().of(*INGRESS) == answered("probe-ingress-0", report("/new"))


WAITING = {
    "phase": "Pending",
    "containerStatuses": [{"name": "probe", "state": {"waiting": {"reason": "ContainerCreating"}}}],
    "conditions": [{"type": "Ready", "message": "MountVolume.SetUp failed: secret not found"}, {"type": "Other"}],
}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (WAITING, "the pod is pending: ContainerCreating; MountVolume.SetUp failed: secret not found"),
        ({}, "the pod is pending: the kubelet reports no reason"),
    ],
)
def test_a_pod_that_does_not_run_shows_the_kubelets_reason(
    cluster: FakeCluster, answers: Read, status: dict[str, Any], problem: str
) -> None:
    assert answers().of(*INGRESS) == ProbeResult("probe-ingress", None, "no pod in clusters-hc1")
    cluster.add_pod("probe-ingress", status)
    assert answers().of(*INGRESS).problem == problem


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_probe_that_answers_nothing_or_no_report_is_a_problem_of_its_row(
    cluster: FakeCluster, answers: Read, serve_plain: Serve, address: str
) -> None:
    async def page(request: Request) -> PlainTextResponse:
        return PlainTextResponse("somebody else's page")

    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    cluster.add_pod("probe-ingress", {"phase": "Running", "podIP": address}, port=port)
    found = answers().of(*INGRESS)
    assert found.report is None
    assert found.problem == "the pod's probe does not answer: the kubelet reports no reason"
    cluster.add_pod("probe-kms", **running(serve_plain(Starlette(routes=[Route("/readyz", page)]))))
    assert str(answers().of(NAMESPACE, "probe-kms").problem).startswith("the pod's probe answers no report: ")


def test_an_api_that_does_not_answer_or_refuses_is_unreachable(serve_plain: Serve, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    with pytest.raises(ProbesUnreachableError, match=f"the Kubernetes API of {kubeconfig} does not answer"):
        local_probes(local_environment(tmp_path, kubeconfig))
    write_kubeconfig(kubeconfig, serve_plain(Starlette()))
    with pytest.raises(
        ProbesUnreachableError,
        match=r"refuses the list of them \(404 Not Found\)\. `.venv/bin/idstack local start` starts",
    ):
        local_probes(local_environment(tmp_path, kubeconfig))
    kubeconfig.write_text("")
    for file in (kubeconfig, tmp_path / "nowhere"):
        with pytest.raises(ProbesUnreachableError, match=f"{file} does not exist, or is not a kubeconfig"):
            local_probes(local_environment(tmp_path, file))
