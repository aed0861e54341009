"""A stack that many things are wrong with at once, each injected where it would happen."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx

from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

NAMESPACE: Final = "clusters-hc1"
AUTHORIZATION: Final = "2022-04-01"
_CLASSES: Final = f"/apis/secrets-store.csi.x-k8s.io/v1/namespaces/{NAMESPACE}/secretproviderclasses"
_DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_SEEN_WITHIN: Final = timedelta(seconds=120)


def break_identities(stack: LocalStack) -> None:
    """A fault of its own for each identity; returns when the pods are those of the changed Deployments."""
    out_of_band = OutOfBand(stack)
    with out_of_band.secrets() as secrets:
        secrets.update_secret_properties("nodepool-mgmt-hc1-json", expires_on=datetime.now(UTC) - timedelta(minutes=1))
        secrets.update_secret_properties("cpo-hc1-json", enabled=False)
    application = stack.resource("hc1-cloud-provider-entra-application")["id"]
    out_of_band.graph("PATCH", application, {"keyCredentials": []})
    out_of_band.arm("DELETE", stack.resource("hc1-ingress-roles-vnet")["id"], AUTHORIZATION)
    with stack.kubernetes() as http:
        patch_class(http, "managed-azure-disk-csi", {"tenantId": "another"})
        http.delete(f"{_CLASSES}/managed-azure-file-csi").raise_for_status()
        _move(http, "probe-network", "/mnt/elsewhere")
        stop(http, "probe-kms-2")
        until(lambda: any("/mnt/elsewhere" in _paths(pod) for pod in _pods(http, "probe-network")))
        until(lambda: not _pods(http, "probe-kms-2"))


@contextmanager
def locked(stack: LocalStack, *, pid: int, host: str) -> Iterator[None]:
    """An engine has locked the stack; `host` and `pid` are those of its process."""
    folder = stack.state / "pulumi/backend/.pulumi/locks/organization/idstack" / stack.name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "6f0cbf4e-6e0b-4a51-8f5b-3c1f5f5a7d11.json"
    since = (datetime.now(UTC) - timedelta(minutes=47)).isoformat()
    file.write_text(json.dumps({"pid": pid, "username": "eve", "hostname": host, "timestamp": since}))
    try:
        yield
    finally:
        file.unlink()


@contextmanager
def half_done(stack: LocalStack, resource: str) -> Iterator[None]:
    """A killed engine has left the creation of a resource half done in the state."""
    before = stack.checkpoint.read_text(encoding="utf-8")
    found = json.loads(before)
    operation = {"resource": {**stack.resource(resource), "id": ""}, "type": "creating"}
    found["checkpoint"]["latest"]["pending_operations"] = [operation]
    stack.checkpoint.write_text(json.dumps(found), encoding="utf-8")
    try:
        yield
    finally:
        stack.checkpoint.write_text(before, encoding="utf-8")


def dead_process() -> int:
    """The id of a process that has ended."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def write_document(stack: LocalStack, secret: str, value: str) -> str:
    """Write a version of a secret as another tool would, with the same tags and dates; returns the value before."""
    with OutOfBand(stack).secrets() as secrets:
        before = secrets.get_secret(secret)
        found = before.properties
        secrets.set_secret(secret, value, tags=found.tags, content_type=found.content_type, expires_on=found.expires_on)
    return before.value or ""


def restart(stack: LocalStack, deployment: str) -> None:
    """Delete the pods of a Deployment; returns once there are others."""
    with stack.kubernetes() as http:
        before = {pod["metadata"]["name"] for pod in _pods(http, deployment)}
        for name in before:
            http.delete(f"{_PODS}/{name}").raise_for_status()
        until(lambda: bool({pod["metadata"]["name"] for pod in _pods(http, deployment)} - before))


def until(is_so: Callable[[], bool], found: Callable[[], object] = str) -> None:
    """Return once it is so; `found` is what there is in its place."""
    deadline = datetime.now(UTC) + _SEEN_WITHIN
    while not is_so():
        assert datetime.now(UTC) < deadline, f"it does not happen: {found()}"
        threading.Event().wait(0.1)


def patch_class(http: httpx.Client, name: str, parameters: Any) -> None:
    """Change parameters of a SecretProviderClass."""
    _patch(http, f"{_CLASSES}/{name}", {"spec": {"parameters": parameters}})


def stop(http: httpx.Client, deployment: str) -> None:
    """Have no pod of a Deployment."""
    _patch(http, f"{_DEPLOYMENTS}/{deployment}", {"spec": {"replicas": 0}})


def _patch(http: httpx.Client, path: str, body: Any) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    http.patch(path, json=body, headers=headers).raise_for_status()


def _move(http: httpx.Client, deployment: str, directory: str) -> None:
    """Mount the credential somewhere else."""
    pod = http.get(f"{_DEPLOYMENTS}/{deployment}").raise_for_status().json()["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [mount] = container["volumeMounts"]
    moved = {**container, "volumeMounts": [{**mount, "mountPath": directory}]}
    _patch(http, f"{_DEPLOYMENTS}/{deployment}", {"spec": {"template": {"spec": {"containers": [moved]}}}})


def _pods(http: httpx.Client, deployment: str) -> list[dict[str, Any]]:
    listed = http.get(_PODS, params={"labelSelector": f"app.kubernetes.io/instance={deployment}"}).raise_for_status()
    return [pod for pod in listed.json()["items"] if "deletionTimestamp" not in pod["metadata"]]


def _paths(pod: dict[str, Any]) -> set[str]:
    return {mount["mountPath"] for container in pod["spec"]["containers"] for mount in container["volumeMounts"]}
