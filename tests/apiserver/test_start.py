"""A control plane that is started once, kept, and found again."""

from __future__ import annotations

import json
import os
import signal

import httpx
import pytest

from localcloud.testing.running import ended, processes
from localcloud.testing.upstream_definitions import upstream
from tests.apiserver.installed import PATH, installed
from tests.harness import LocalStack

_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "daemon", "kubelet")
_PODS = "/api/v1/namespaces/clusters-hc1/pods"


def pids(stack: LocalStack) -> dict[str, int]:
    found = {name: processes.alive(stack.state / "pids", name) for name in _NAMES}
    return {name: process.pid for name, process in found.items() if process}


def test_a_second_start_starts_nothing(stack: LocalStack) -> None:
    before = pids(stack)

    assert "runs already" in stack.local_cloud("start")
    assert pids(stack) == before
    assert set(before) == set(_NAMES)


def test_the_other_api_is_not_to_be_had_before_this_one_is_gone(stack: LocalStack) -> None:
    refused = stack.run("python", "-m", "localcloud", "start", "--cluster", "builtin", check=False)

    assert refused.returncode == 1
    assert refused.stderr == (
        "this local cloud has its Kubernetes API from kube-apiserver, which is fixed: end it, and all that is in "
        "it, with `localcloud stop --remove`, then `localcloud start --cluster builtin` starts one with the built-in "
        "server\n"
    )


def test_the_record_tells_which_api_answers_and_where(stack: LocalStack) -> None:
    record = json.loads(stack.local_cloud("env", "--json"))

    assert record["cluster"] == "apiserver"
    assert httpx.get(f"{record['kubernetesEndpoint']}/version", verify=False).json()["gitVersion"] == "v1.35.4"  # noqa: S501


@pytest.mark.parametrize("names", [("kube-apiserver",), ("etcd", "kube-apiserver", "kube-controller-manager")])
def test_a_killed_control_plane_comes_back_with_everything(
    stack: LocalStack, deployer: httpx.Client, names: tuple[str, ...]
) -> None:
    before = {pod["metadata"]["uid"] for pod in deployer.get(_PODS).json()["items"]}
    for name in names:
        pid = pids(stack)[name]
        os.kill(pid, signal.SIGKILL)
        assert ended(pid)

    printed = stack.local_cloud("start")

    assert all(name in printed for name in names)
    with stack.kubernetes() as again:
        assert {pod["metadata"]["uid"] for pod in again.get(_PODS).json()["items"]} == before


def test_a_start_leaves_what_another_manager_has_applied(stack: LocalStack, administrator: httpx.Client) -> None:
    definition = upstream("azureclusteridentities")
    with installed(administrator, definition):
        assert "runs already" in stack.local_cloud("start")
        found = administrator.get(PATH.format(definition["metadata"]["name"])).raise_for_status().json()
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"].startswith("AzureClusterIdentity is the Schema")
