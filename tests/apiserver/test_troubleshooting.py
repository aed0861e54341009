"""The kubectl commands of troubleshooting.md, with the kubectl beside kube-apiserver."""

from __future__ import annotations

import json
import shlex
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from localcloud.testing.running import Binaries, StateDirectory
from tests.harness import LocalStack

_PAGE = Path(__file__).resolve().parents[2] / "docs/guides/troubleshooting.md"
_NAMESPACE = "clusters-hc1"
_POD = "deploy/probe-cpo"


def kubectl(stack: LocalStack, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """As the administrator: the deployer runs no command in a pod."""
    kubeconfig = str(StateDirectory(stack.state).administrator_kubeconfig)
    return stack.run(Binaries.find().path("kubectl"), *arguments, check=check, variables={"KUBECONFIG": kubeconfig})


def documented() -> list[str]:
    """The kubectl commands of the page, in a pod that is there."""
    lines = [line.removeprefix("$ ").replace("<pod>", _POD) for line in _PAGE.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line.startswith("kubectl ")]


@pytest.mark.parametrize("command", documented())
def test_a_documented_command_works(stack: LocalStack, command: str) -> None:
    kubectl(stack, *shlex.split(command)[1:])


def test_the_page_has_the_commands_that_hypershift_names() -> None:
    assert f"kubectl exec -it -n clusters-hc1 {_POD} -- ls -la /mnt/certs" in documented()
    assert "kubectl get secretproviderclass -n clusters-hc1" in documented()
    assert "kubectl describe secretproviderclasspodstatus -n clusters-hc1" in documented()


def test_a_status_tells_what_is_mounted_where(stack: LocalStack) -> None:
    printed = kubectl(stack, "describe", "secretproviderclasspodstatus", "-n", _NAMESPACE).stdout

    assert printed.count("Mounted:  true") == 10
    assert "secret/cpo-hc1-json" in printed
    read = kubectl(stack, "get", "secretproviderclasspodstatuses", "-n", _NAMESPACE, "-o", "json").stdout
    listed = json.loads(read)
    statuses = {pod_status["status"]["secretProviderClassName"]: pod_status["status"] for pod_status in listed["items"]}
    mounted = Path(statuses["managed-azure-cpo"]["targetPath"], "cpo-hc1-json")
    assert mounted.is_symlink()
    assert json.loads(mounted.read_text(encoding="utf-8"))["client_id"]


def test_a_command_and_a_log_reach_the_kubelet(stack: LocalStack) -> None:
    document = kubectl(stack, "exec", "-n", _NAMESPACE, _POD, "--", "cat", "/mnt/certs/cpo-hc1-json").stdout
    failed = kubectl(stack, "exec", "-n", _NAMESPACE, _POD, "--", "sh", "-c", "exit 3", check=False)
    piped = kubectl(stack, "exec", "-i", "-n", _NAMESPACE, _POD, "--", "cat").stdout
    last = kubectl(stack, "logs", "-n", _NAMESPACE, _POD, "--tail=1").stdout

    assert json.loads(document)["client_id"] == stack.control_plane["controlPlaneOperator"]["clientID"]
    assert (failed.returncode, piped) == (3, "")
    assert len(last.splitlines()) == 1


def test_what_the_kubelet_does_not_do_names_the_pods_folder(stack: LocalStack) -> None:
    refused = kubectl(stack, "attach", "-n", _NAMESPACE, _POD, check=False)

    assert str(stack.state / "run/mounts" / _NAMESPACE) in refused.stderr


def test_nobody_but_the_api_server_speaks_to_the_kubelet(stack: LocalStack, administrator: httpx.Client) -> None:
    node = administrator.get("/api/v1/nodes/local").raise_for_status().json()["status"]
    port = node["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    trusting = ssl.create_default_context(cafile=stack.environment.ca_file)

    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        httpx.get(f"https://127.0.0.1:{port}/containerLogs/{_NAMESPACE}/x/probe", verify=trusting)
