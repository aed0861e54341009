"""What the real control plane brings along: graceful deletion, garbage collection, service accounts, encryption."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.testing.running import processes
from tests.harness import LocalStack

_PODS = "/api/v1/namespaces/{}/pods"
_WITHIN = 60


def once(http: httpx.Client, path: str, holds: Callable[[dict[str, dict[str, Any]]], object]) -> None:
    """Return as soon as something holds for the objects of a collection, by name; asked again at every change."""
    listed = http.get(path).raise_for_status().json()
    found = {obj["metadata"]["name"]: obj for obj in listed["items"]}
    query = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"], "timeoutSeconds": str(_WITHIN)}
    with http.stream("GET", httpx.URL(path).copy_merge_params(query), timeout=_WITHIN + 10) as changes:
        lines = changes.iter_lines()
        while not holds(found):
            line = next(lines, None)
            assert line, f"not within {_WITHIN} s: {list(found)}"
            event = json.loads(line)
            name = event["object"]["metadata"]["name"]
            found[name] = event["object"]
            if event["type"] == "DELETED":
                del found[name]


@pytest.fixture(scope="module")
def namespace(administrator: httpx.Client) -> Iterator[str]:
    """A namespace of these tests' own, with everything in it gone afterwards."""
    name = f"test-{secrets.token_hex(3)}"
    administrator.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
    once(administrator, f"/api/v1/namespaces/{name}/serviceaccounts", lambda found: "default" in found)
    yield name
    administrator.delete(f"/api/v1/namespaces/{name}").raise_for_status()
    once(administrator, "/api/v1/namespaces", lambda found: name not in found)


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.example.com/c:1", "command": ["sleep", "600"]}
    spec = {"containers": [container], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def is_running(pod: dict[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def test_a_deleted_pod_ends_gracefully_and_its_deployment_replaces_it(
    administrator: httpx.Client, namespace: str
) -> None:
    pods = _PODS.format(namespace)
    administrator.post(
        f"/apis/apps/v1/namespaces/{namespace}/deployments", json=deployment("deleted-pod")
    ).raise_for_status()
    once(administrator, pods, lambda found: any(map(is_running, found.values())))
    [name] = [pod["metadata"]["name"] for pod in administrator.get(pods).json()["items"]]

    marked = administrator.delete(f"{pods}/{name}").raise_for_status().json()

    assert marked["metadata"]["deletionGracePeriodSeconds"] == 1, "the API server waits for the kubelet"
    once(administrator, pods, lambda found: name not in found and any(map(is_running, found.values())))


def test_what_a_deleted_deployment_owned_is_collected(
    stack: LocalStack, administrator: httpx.Client, namespace: str
) -> None:
    pods = f"{_PODS.format(namespace)}?labelSelector=app%3Downer"
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    administrator.post(path, json=deployment("owner", 2)).raise_for_status()
    once(administrator, pods, lambda found: sum(map(is_running, found.values())) == 2)

    administrator.request("DELETE", f"{path}/owner", json={"propagationPolicy": "Foreground"}).raise_for_status()

    once(administrator, path, lambda found: "owner" not in found)
    assert administrator.get(pods).json()["items"] == [], "foreground: the owner goes last"
    assert not list(Path(stack.environment.mounts_dir, namespace).glob("*owner*"))
    assert not [
        record.name
        for record in (stack.state / "pids").glob(f"probe-{namespace}-owner-*.json")
        if processes.alive(stack.state / "pids", record.stem)
    ]


def test_a_deleted_claim_of_a_volume_goes(administrator: httpx.Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = administrator.post(path, json={"metadata": {"name": "data"}, "spec": spec}).raise_for_status().json()
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]

    administrator.delete(f"{path}/data").raise_for_status()

    once(administrator, path, lambda found: not found)


def test_a_secret_is_not_in_clear_on_the_disk(stack: LocalStack, administrator: httpx.Client, namespace: str) -> None:
    marker = secrets.token_hex(16)
    path = f"/api/v1/namespaces/{namespace}/secrets"
    administrator.post(path, json={"metadata": {"name": "marked"}, "stringData": {"value": marker}}).raise_for_status()
    written = base64.b64decode(administrator.get(f"{path}/marked").json()["data"]["value"]).decode()

    assert written == marker
    files = [file for file in (stack.state / "etcd").rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if marker.encode() in file.read_bytes()]


def test_nothing_but_the_api_listens_on_a_port(stack: LocalStack) -> None:
    own = {
        processes.alive(stack.state / "pids", name).pid  # type: ignore[union-attr]
        for name in ("etcd", "kube-apiserver", "kube-controller-manager")
    }
    sockets = {
        link.readlink().name for pid in own for link in Path(f"/proc/{pid}/fd").iterdir() if "socket:" in _target(link)
    }
    listening = [
        fields[1]
        for table in Path("/proc/net").glob("tcp*")  # there may be no IPv6
        for line in table.read_text().splitlines()[1:]
        if (fields := line.split())[3] == "0A" and f"socket:[{fields[9]}]" in sockets
    ]

    address, _, port = stack.environment.kubernetes_endpoint.removeprefix("https://").partition(":")
    assert address == "127.0.0.1"
    assert listening == [f"0100007F:{int(port):04X}"]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""
