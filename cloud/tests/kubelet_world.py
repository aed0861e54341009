"""A node of the local cloud for tests: its Azure, its cluster's API, and the kubelet in a thread of this process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx

from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core.clouds import LocalEnvironment
from localcloud.kubelet.client import EVENTS, PODS, ApiResource
from localcloud.kubelet.containers import Intervals
from localcloud.kubelet.main import NODE, serve
from localcloud.kubelet.selection import is_ready
from localcloud.kubernetes.kubeconfig import connection
from localcloud.testing.arm import VAULT, ArmWorld

Object = dict[str, Any]
T = TypeVar("T")

NAMESPACE = "clusters-hc1"
QUICK: Final = Intervals(rotation=0.05, mount=(0.05, 0.1), restart=(0.05, 0.1), ending=0.05)
_AWAITED_SECONDS = 120  # until a missing event is a failure; no test waits for it otherwise


class ClusterApi:
    """The API as a test uses it, in one namespace, which it makes; `http` carries the token."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})

    def create(self, resource: ApiResource, document: Object) -> Object:
        """Create an object."""
        return self._call("POST", resource.path(NAMESPACE), document)

    def merge(self, resource: ApiResource, name: str, patch: Object) -> Object:
        """Change an object by a JSON merge patch."""
        return self._call("PATCH", resource.path(NAMESPACE, name), patch, type_="application/merge-patch+json")

    def delete(self, resource: ApiResource, name: str, **options: str) -> None:
        """Delete an object."""
        self._call("DELETE", resource.path(NAMESPACE, name), options)

    def get(self, resource: ApiResource, name: str) -> Object:
        """An object that is there."""
        return self._call("GET", resource.path(NAMESPACE, name))

    def all(self, resource: ApiResource) -> list[Object]:
        """All objects of the namespace."""
        items: list[Object] = self._call("GET", resource.path(NAMESPACE))["items"]
        return items

    def once(self, resource: ApiResource, found: Callable[[list[Object]], T | None]) -> T:
        """What `found` makes of the collection as soon as that is something; tried again at every change."""
        listed = self._call("GET", resource.path(NAMESPACE))
        items = {item["metadata"]["name"]: item for item in listed["items"]}
        query = {
            "watch": "1",
            "resourceVersion": listed["metadata"]["resourceVersion"],
            "timeoutSeconds": str(_AWAITED_SECONDS),
        }
        with self._http.stream("GET", resource.path(NAMESPACE), params=query) as changes:
            lines = changes.iter_lines()
            while not (result := found(list(items.values()))):
                line = next(lines, None)
                assert line, f"not within {_AWAITED_SECONDS} s: {json.dumps(list(items.values()), indent=1)}"
                event = json.loads(line)
                name = event["object"]["metadata"]["name"]
                items[name] = event["object"]
                if event["type"] == "DELETED":
                    del items[name]
        return result

    def once_pod(self, name: str, holds: Callable[[Object], object]) -> Object:
        """The pod as soon as something holds for it."""
        return self.once(PODS, lambda pods: next((pod for pod in pods if _name(pod) == name and holds(pod)), None))

    def ready(self, name: str) -> Object:
        """The pod, once it is ready."""
        return self.once_pod(name, is_ready)

    def run(self, document: Object) -> Object:
        """A new pod, once it is ready."""
        self.create(PODS, document)
        return self.ready(_name(document))

    def finished(self, name: str) -> Object:
        """The pod, once its containers have ended for good."""
        return self.once_pod(name, lambda pod: pod.get("status", {}).get("phase") in {"Succeeded", "Failed"})

    def event(self, pod: str, reason: str, text: str = "") -> Object:
        """An event about the pod whose message holds `text`, once there is one."""
        return self.once_event(pod, lambda event: event["reason"] == reason and text in event["message"])

    def once_event(self, pod: str, holds: Callable[[Object], object]) -> Object:
        """An event about the pod, as soon as something holds for it."""

        def found(events: list[Object]) -> Object | None:
            about = [event for event in events if event["involvedObject"]["name"] == pod]
            return next((event for event in about if holds(event)), None)

        return self.once(EVENTS, found)

    def _call(self, method: str, path: str, body: Object | None = None, *, type_: str = "application/json") -> Object:
        answer = self._http.request(method, path, json=body, headers={"Content-Type": type_})
        assert answer.is_success, answer.text
        document: Object = answer.json()
        return document


@contextmanager
def cluster_of(environment: LocalEnvironment) -> Iterator[ClusterApi]:
    """The cluster of a local cloud."""
    # A watch may be silent for as long as it is awaited.
    with connection(environment.kubeconfig).client(timeout=2 * _AWAITED_SECONDS) as http:
        yield ClusterApi(http)


@dataclass(frozen=True)
class Azure:
    """The stack's vault, and the managed identities of its node."""

    world: ArmWorld

    def identity(self, name: str = "key-vault-user", *, attached: bool = True, role: bool = True) -> ServicePrincipal:
        """A managed identity; `attached` to the node, with the `role` to read the vault's secrets."""
        principal = self.world.managed_identity(name)
        if attached:
            self.world.attach(principal)
        if role:
            self.grant(principal)
        return principal

    def grant(self, principal: ServicePrincipal) -> None:
        """Let the identity read the vault's secrets."""
        self.world.grant(principal, "Key Vault Secrets User", VAULT)

    def secret(self, name: str, value: str) -> str:
        """Set a secret; returns the new version."""
        answer = self.world.vault("PUT", f"/secrets/{name}", {"value": value})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"].rpartition("/")[2])


@dataclass(frozen=True)
class Kubelet:
    """A running kubelet's files."""

    environment: LocalEnvironment
    stop: Callable[[], None]

    def tree(self, workload: str) -> Path:
        """File tree of the workload's newest pod."""
        return Path(self.environment.mounts_dir, NAMESPACE, workload)

    def log(self, pod: str, container: str = "c") -> str:
        """What a container has printed."""
        return Path(self.environment.state_dir, "logs", NAMESPACE, pod, f"{container}.log").read_text()

    def processes(self) -> list[int]:
        """Ids of the recorded processes of all containers."""
        records = Path(self.environment.state_dir, "pids").glob("probe-*.json")
        return [json.loads(record.read_text())["pid"] for record in records]


@contextmanager
def running(environment: LocalEnvironment, intervals: Intervals = QUICK) -> Iterator[Kubelet]:
    """The kubelet, until the end of the block or its `stop`."""
    loop = asyncio.new_event_loop()
    stopped = asyncio.Event()
    ended: Future[None] = Future()

    def run() -> None:
        try:
            kubeconfig = Path(environment.kubeconfig)
            ended.set_result(loop.run_until_complete(serve(environment, kubeconfig, stopped, intervals)))
        except BaseException as error:
            ended.set_exception(error)
        finally:
            loop.close()

    def stop() -> None:
        if not ended.done():
            loop.call_soon_threadsafe(stopped.set)
        ended.result(_AWAITED_SECONDS)

    threading.Thread(target=run, daemon=True).start()
    yield Kubelet(environment, stop)
    stop()


def provider_parameters(client_id: str, *objects: Mapping[str, str]) -> dict[str, str]:
    """Parameters of a SecretProviderClass for secrets of the stack's vault, each given by its fields but the type."""
    lines = ["", "array:"]
    for fields in objects:
        lines += ["  - |", *(f"    {name}: {value}" for name, value in {"objectType": "secret", **fields}.items())]
    return {
        "usePodIdentity": "false",
        "useVMManagedIdentity": "true",
        "userAssignedIdentityID": client_id,
        "keyvaultName": "kv-idstack-local",
        "tenantId": "10ca1000-0000-4000-8000-000000000001",
        "objects": "\n".join([*lines, ""]),
    }


def provider_class(name: str, client_id: str, *objects: Mapping[str, str]) -> Object:
    """A SecretProviderClass, see `provider_parameters`."""
    spec = {"provider": "azure", "parameters": provider_parameters(client_id, *objects)}
    return {"metadata": {"name": name}, "spec": spec}


def csi_volume(class_name: str, name: str = "credential") -> Object:
    """A volume that the Secrets Store driver fills."""
    attributes = {"secretProviderClass": class_name}
    return {
        "name": name,
        "csi": {"driver": "secrets-store.csi.k8s.io", "readOnly": True, "volumeAttributes": attributes},
    }


def pod(name: str, *volumes: Object, spec: Object | None = None, **container: Any) -> Object:
    """A pod of this node that runs once, with each volume at `/mnt/<its name>`; `spec` and `container`: more fields."""
    mounts = [{"name": volume["name"], "mountPath": f"/mnt/{volume['name']}"} for volume in volumes]
    only = {"name": "c", "image": "registry.example.com/c:1", "command": ["sleep", "600"], "volumeMounts": mounts}
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODE,
            "restartPolicy": "Never",
            "volumes": list(volumes),
            "containers": [{**only, **container}],
            **(spec or {}),
        },
    }


def states(pod: Object) -> dict[str, dict[str, Any]]:
    """State of each container by name; none before the kubelet has reported."""
    return {
        container_status["name"]: container_status["state"]
        for container_status in pod.get("status", {}).get("containerStatuses", [])
    }


def _name(document: Object) -> str:
    return str(document["metadata"]["name"])
