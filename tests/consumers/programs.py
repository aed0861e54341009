"""The programs of the control plane: how each is started, as its Deployment has it, and its first read and write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from identity.catalogue_rows import Mount
from tests.consumers.consumer import EXPIRED, Consumer, free_port, guest_kubeconfig

_SECONDS: Final = 120
_SERVICES: Final = "/api/v1/namespaces/default/services"


class Kms(Consumer):
    """The KMS plugin, whose health check encrypts and decrypts with the key of etcd, by both versions of its API."""

    program = "kubernetes-kms"
    field = "kms"
    key = "activeKey"

    def arguments(self, mount: Mount) -> Sequence[str]:
        assert mount.config is not None
        vault, _, name, version = self.cluster["kms"][self.key].removeprefix("https://").split("/")
        self._health = f"http://127.0.0.1:{(port := free_port())}/healthz"
        return (
            *(f"--config-file-path={mount.config.path}", "--listen-addr=unix:///tmp/kms.sock"),
            *(f"--keyvault-name={vault.partition('.')[0]}", f"--key-name={name}", f"--key-version={version}"),
            *(f"--healthz-port={port}", f"--metrics-addr={free_port()}"),
        )

    def work(self) -> str:
        with httpx.Client(transport=httpx.HTTPTransport(retries=10), timeout=_SECONDS) as http:
            answer = http.get(self._health)
        return "" if answer.is_success else answer.text


class BackupKms(Kms):
    """Beside it, the one with the key that encrypted etcd before."""

    key = "backupKey"


class CloudControllerManager(Consumer):
    """The cloud controller manager, with the local cluster as its guest: a Service of type LoadBalancer."""

    program = "azure-cloud-controller-manager"
    field = "cloudProvider"
    guest = True

    def arguments(self, mount: Mount) -> Sequence[str]:
        assert mount.config is not None
        guest_kubeconfig(self.stack, self.folder)
        # As HyperShift's Deployment has them, but for the election of a leader.
        return (
            *(f"--cloud-config={mount.config.path}", "--cloud-provider=azure", "--controllers=*,-cloud-node"),
            *("--configure-cloud-routes=false", "--bind-address=127.0.0.1", f"--secure-port={free_port()}"),
            *("--leader-elect=false", "--kubeconfig=/tmp/kubeconfig", "--v=4"),
        )

    def work(self) -> str:
        service = {
            "metadata": {"generateName": "consumers-"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 443}], "selector": {"app": "router"}},
        }
        with self.stack.kubernetes("administrator") as http:
            name = http.post(_SERVICES, json=service).raise_for_status().json()["metadata"]["name"]
            refused = _said_of(http, name, "EnsuredLoadBalancer")
            http.delete(f"{_SERVICES}/{name}").raise_for_status()
            return refused or _said_of(http, name, "DeletedLoadBalancer")


class EtcdUpload(Consumer):
    """The upload of a backup of etcd, a Job of HyperShift's operator."""

    program = "control-plane-operator"
    field = "etcdBackup"

    def arguments(self, mount: Mount) -> Sequence[str]:
        return (
            *("etcd-upload", "--snapshot-path=/tmp/snapshot.db", "--key-prefix=hc1", "--storage-type=AzureBlob"),
            *("--azure-container=etcd", "--azure-storage-account=backuplocal", "--azure-auth-type=managed-identity"),
            f"--credentials-file={mount.path}/{mount.file}",
        )

    def start(self) -> None:
        (self.folder / "snapshot.db").write_text("etcd")
        super().start()

    def work(self) -> str:
        assert self._process is not None
        status = self._process.wait()
        Path("/dev/termination-log").unlink(missing_ok=True)  # the machine's: a pod's /dev would be its own
        return self.printed() if status else ""


def _said_of(http: httpx.Client, service: str, wanted: str) -> str:
    """Wait for an Event of a Service with this reason; returns the message of a failure that comes before it."""
    watched = {"watch": "1", "fieldSelector": f"involvedObject.name={service}", "timeoutSeconds": str(_SECONDS)}
    with http.stream("GET", "/api/v1/namespaces/default/events", params=watched, timeout=2 * _SECONDS) as changes:
        for event in map(_object, changes.iter_lines()):
            if event["reason"] == wanted:
                return ""
            if event["reason"] == "SyncLoadBalancerFailed" and EXPIRED not in event["message"]:
                return str(event["message"])
    raise AssertionError(f"the cloud controller manager says nothing of {service}")


def _object(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)["object"]
    return found
