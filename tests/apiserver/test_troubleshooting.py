"""The kubectl commands of troubleshooting.md, with the kubectl beside kube-apiserver."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from localcloud.testing.running import Binaries
from tests.harness import LocalStack

_PAGE = Path(__file__).resolve().parents[2] / "docs/guides/troubleshooting.md"
_NAMESPACE = "clusters-hc1"


def kubectl(stack: LocalStack, *arguments: str) -> str:
    return stack.run(
        Binaries.find().path("kubectl"), *arguments, variables={"KUBECONFIG": stack.environment.kubeconfig}
    ).stdout


def documented() -> list[str]:
    """The kubectl commands of the page that need no kubelet's server."""
    lines = [line.removeprefix("$ ") for line in _PAGE.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line.startswith("kubectl ") and " exec " not in line]


@pytest.mark.parametrize("command", documented())
def test_a_documented_command_works(stack: LocalStack, command: str) -> None:
    kubectl(stack, *shlex.split(command)[1:])


def test_the_page_has_the_commands_that_hypershift_names() -> None:
    assert "kubectl get secretproviderclass -n clusters-hc1" in documented()
    assert "kubectl describe secretproviderclasspodstatus -n clusters-hc1" in documented()


def test_the_classes_of_nine_identities_are_listed(stack: LocalStack) -> None:
    listed = kubectl(stack, "get", "secretproviderclass", "-n", _NAMESPACE, "-o", "name").splitlines()

    prefix = "secretproviderclass.secrets-store.csi.x-k8s.io/managed-azure-"
    names = [
        *("cloud-provider", "cpo", "disk-csi", "file-csi", "image-registry", "ingress", "kms", "network"),
        "nodepool-management",
    ]
    assert listed == [f"{prefix}{name}" for name in names]


def test_a_status_tells_what_is_mounted_where(stack: LocalStack) -> None:
    printed = kubectl(stack, "describe", "secretproviderclasspodstatus", "-n", _NAMESPACE)

    assert printed.count("Mounted:  true") == 10
    assert "secret/cpo-hc1-json" in printed
    listed = json.loads(kubectl(stack, "get", "secretproviderclasspodstatuses", "-n", _NAMESPACE, "-o", "json"))
    statuses = {pod_status["status"]["secretProviderClassName"]: pod_status["status"] for pod_status in listed["items"]}
    mounted = Path(statuses["managed-azure-cpo"]["targetPath"], "cpo-hc1-json")
    assert mounted.is_symlink()
    assert json.loads(mounted.read_text(encoding="utf-8"))["client_id"]
