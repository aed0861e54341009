"""The local kube-apiserver as HyperShift's management cluster: commands on it, and what is in it."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from localcloud.testing.running import Binaries, StateDirectory
from localcloud.testing.upstream_definitions import module_source
from ops.outputs.hypershift import DEFINITIONS
from tests.harness import LocalStack
from tests.hypershift.registry import VERSION

# What HyperShift's operator watches on a cluster that is no OpenShift, each as Go module, release and its checksum: the
# module that HyperShift itself has, as the commit whose file its scripts name is not on the module proxy, and a release
# of the other.
_OPENSHIFT_API: Final = (
    "github.com/openshift/api",
    "v0.0.0-20260805160557-b61243060d5f",
    "h1:NU7ltJhtFhqAJC+77DcNk6jmIpsJ3a+mebZIceiPW+U=",
)
_PROMETHEUS_OPERATOR: Final = (
    "github.com/prometheus-operator/prometheus-operator",
    "v0.85.0",
    "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
)
NAMESPACE: Final = "clusters-hc1"
_CORE: Final = f"/api/v1/namespaces/{NAMESPACE}"
_BATCH: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}"
_STORE: Final = f"/apis/secrets-store.csi.x-k8s.io/v1/namespaces/{NAMESPACE}"
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
# HyperShift writes them in the control plane's namespace for consumers that mount them.
CONFIGURATIONS: Final = (
    "secrets/azure-cloud-config",
    "configmaps/azure-cloud-config",
    "secrets/azure-disk-csi-config",
    "secrets/azure-file-csi-config",
    "secrets/azure-kms-config",
)
# Those of the guest cluster, for which every other component waits, and its etcd, whose StatefulSet counts them.
_SERVERS: Final = "app%20in%20(etcd,kube-apiserver,openshift-apiserver)"
# What the Job writes: the gates of the release, none here.
_FEATURE_GATES: Final = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "FeatureGate",
    "metadata": {"name": "cluster"},
    "status": {"featureGates": [{"version": VERSION, "enabled": [], "disabled": []}]},
}
_LONGEST: Final = "600s"


@dataclass(frozen=True)
class ManagementCluster:
    """Commands as its administrator, with HyperShift's programs and `kubectl` on PATH."""

    stack: LocalStack
    binaries: Path
    variables: Mapping[str, str]

    def shell(self, command: str) -> str:
        """Run a command of the shell in the stack's folder; returns what it prints on its standard output."""
        tools = Binaries.find().directory
        environment = {
            **os.environ,
            "PATH": f"{self.binaries}:{tools}:{os.environ['PATH']}",
            "KUBECONFIG": str(StateDirectory(self.stack.state).administrator_kubeconfig),
            **self.variables,
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.stack.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def kubectl(self, *arguments: str) -> str:
        """Run `kubectl`."""
        return self.shell(shlex.join(["kubectl", *arguments]))

    def wait(self, condition: str, what: str, *, namespace: str = NAMESPACE) -> None:
        """Wait for a condition of an object, as `kubectl wait --for` takes it (`create`, `condition=Available`)."""
        self.kubectl("--namespace", namespace, "wait", f"--for={condition}", what, f"--timeout={_LONGEST}")

    def apply_definitions(self, printed: str) -> None:
        """Run printed `kubectl apply` lines with the definitions' files in the place of their addresses."""
        for address in DEFINITIONS:
            assert address in printed
            printed = printed.replace(address, str(_file_of(address)))
        self.shell(printed)


def _file_of(address: str) -> Path:
    """Where a definition that is applied by its address lies, out of its project's Go module."""
    if address.endswith("routes.crd.yaml"):
        return module_source(*_OPENSHIFT_API) / "route/v1/zz_generated.crd-manifests/routes.crd.yaml"
    return module_source(*_PROMETHEUS_OPERATOR) / "example/prometheus-operator-crd" / address.rpartition("/")[2]


def handed_over(http: httpx.Client) -> dict[str, Any]:
    """The classes and configurations of the control plane's namespace: specification or data by kind and name."""
    classes = http.get(f"{_STORE}/secretproviderclasses").raise_for_status().json()["items"]
    found: dict[str, Any] = {f"secretproviderclasses/{one['metadata']['name']}": one["spec"] for one in classes}
    for configuration in CONFIGURATIONS:
        answer = http.get(f"{_CORE}/{configuration}")
        if answer.is_success:
            found[configuration] = answer.json()["data"]
    return found


def mounted_versions(http: httpx.Client, workload: str) -> dict[str, str]:
    """Version by secret in the mounts of a Deployment's pods, as the CSI driver reports them."""
    statuses = http.get(f"{_STORE}/secretproviderclasspodstatuses").raise_for_status().json()["items"]
    mine = [status["status"] for status in statuses if status["status"]["podName"].startswith(f"{workload}-")]
    return {obj["id"].removeprefix("secret/"): obj["version"] for status in mine for obj in status["objects"]}


@contextmanager
def rolled_out(http: httpx.Client) -> Iterator[None]:
    """Report what the control-plane operator waits for as ready while the block runs: no etcd and no guest API runs.

    The Job of feature gates has no controller here, and the pods of etcd and of API servers have no program.
    """
    gates = {"metadata": {"name": "feature-gate"}, "data": {"feature-gate.yaml": yaml.safe_dump(_FEATURE_GATES)}}
    http.post(f"{_CORE}/configmaps", json=gates).raise_for_status()
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(1):
            for path, status in _awaited(http):
                http.patch(f"{path}/status", json={"status": status}, headers=_MERGE)

    reporting = threading.Thread(target=report, daemon=True)
    reporting.start()
    try:
        yield
    finally:
        ended.set()
        reporting.join()


def _awaited(http: httpx.Client) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and status of each object that shall be ready."""
    for item in _items(http, f"{_BATCH}/jobs"):
        at = item["metadata"]["creationTimestamp"]
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": at} for kind in ("SuccessCriteriaMet", "Complete")
        ]
        finished = {"startTime": at, "completionTime": at, "succeeded": 1, "conditions": conditions}
        yield f"{_BATCH}/jobs/{item['metadata']['name']}", finished
    for item in _items(http, f"{_CORE}/pods?labelSelector={_SERVERS}"):
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": item["metadata"]["creationTimestamp"]}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        yield f"{_CORE}/pods/{item['metadata']['name']}", {"phase": "Running", "conditions": conditions}


def _items(http: httpx.Client, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = http.get(path).raise_for_status().json()["items"]
    return items


def conditions(document: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Status and message by type."""
    return {one["type"]: (one["status"], one["message"]) for one in document["status"].get("conditions", [])}
