"""Services on loopback: which pods they lead to, and what a connection meets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any, Final, cast

import pytest

from localcloud.kubelet.client import ApiClient, ApiResource
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.services import ServiceProxy, addresses_of, hosts_of, records_of, selects, target_of
from localcloud.kubernetes.calls import Object
from localcloud.testing.hosted_clusters import changed

SERVICE: Final[Object] = {
    "metadata": {"namespace": "hypershift", "name": "operator", "resourceVersion": "1"},
    "spec": {
        "clusterIP": "127.32.0.9",
        "selector": {"name": "operator"},
        "ports": [{"name": "manager", "port": 8443, "targetPort": "manager"}, {"port": 53, "protocol": "UDP"}],
    },
}
POD: Final[Object] = {
    "metadata": {
        "namespace": "hypershift",
        "name": "operator-1",
        "resourceVersion": "1",
        "labels": {"name": "operator", "app": "operator"},
    },
    "spec": {"containers": [{"ports": [{"name": "manager", "containerPort": 9443}]}]},
    "status": {"podIP": "127.64.7.7", "conditions": [{"type": "Ready", "status": "True"}]},
}


class StandingApi:
    """An API in which nothing changes."""

    def __init__(self, **collections: list[Object]) -> None:
        self._collections = collections

    async def list(self, resource: ApiResource) -> tuple[list[Object], str]:
        return self._collections.get(resource.plural, []), "1"

    async def watch(self, resource: ApiResource, version: str) -> AsyncIterator[tuple[str, Object]]:
        await asyncio.Event().wait()
        yield "", {}


def answered(service: Object, pod: Object) -> bytes:
    """What comes back from the Service while the pod's address, and the API server's, answer in upper case."""
    host = "127.64.7.7"

    async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    async def run() -> bytes:
        async with await asyncio.start_server(upper, host, 0) as server, asyncio.TaskGroup() as group:
            port = server.sockets[0].getsockname()[1]
            at = "127.32.0.9", free_port("127.32.0.9")
            live = changed(service, "spec.ports", [{"name": "manager", "port": at[1], "targetPort": port}])
            client = cast(ApiClient, StandingApi(services=[live], pods=[pod]))
            cluster = ClusterCache(client, lambda *_: None)
            proxy = ServiceProxy(cluster, f"https://{host}:{port}")
            tasks = [group.create_task(cluster.pods.run()), group.create_task(proxy.run())]
            try:
                reader, writer = await connection(at)
                writer.write(b"hello")
                writer.write_eof()
                return await reader.read()
            except ConnectionResetError:
                return b""
            finally:
                for task in tasks:
                    task.cancel()

    return asyncio.run(run())


def free_port(host: str) -> int:
    """A port of the address at which nobody listens."""
    with socket.create_server((host, 0)) as server:
        return int(server.getsockname()[1])


async def connection(at: tuple[str, int]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, once somebody listens."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await asyncio.open_connection(*at)
            except ConnectionRefusedError:
                await asyncio.sleep(0)


def test_a_connection_to_a_service_meets_its_ready_pod() -> None:
    assert answered(SERVICE, POD) == b"HELLO"


def test_without_a_ready_pod_the_connection_ends() -> None:
    assert answered(SERVICE, changed(POD, "status.conditions", [])) == b""


def test_the_service_kubernetes_leads_to_the_api_server() -> None:
    service = changed(SERVICE, "metadata", {"namespace": "default", "name": "kubernetes", "resourceVersion": "1"})

    assert answered(changed(service, "spec.selector", {}), POD) == b"HELLO"


@pytest.mark.parametrize(
    ("spec", "addresses"),
    [
        ({}, {("127.32.0.9", 8443)}),
        ({"clusterIP": "None"}, set()),
        ({"clusterIP": ""}, set()),
        ({"ports": []}, set()),
    ],
    ids=["its TCP ports", "headless", "external name", "no port"],
)
def test_a_service_answers_at_its_cluster_ip(spec: dict[str, Any], addresses: set[tuple[str, int]]) -> None:
    assert addresses_of({**SERVICE, "spec": {**SERVICE["spec"], **spec}}) == addresses


def test_a_service_that_is_gone_answers_nowhere() -> None:
    assert addresses_of(None) == set()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("metadata.namespace", "other"),
        ("metadata.labels", {"app": "operator"}),
        ("metadata.deletionTimestamp", "2026-11-25T12:00:00Z"),
        ("status.conditions", []),
        ("status.podIP", ""),
    ],
    ids=["another namespace", "another label", "terminating", "not ready", "without an address"],
)
def test_a_pod_is_left_out(place: str, value: Any) -> None:
    assert selects(SERVICE, POD)
    assert not selects(SERVICE, changed(POD, place, value))


def test_a_service_may_take_pods_that_are_not_ready() -> None:
    service = changed(SERVICE, "spec.publishNotReadyAddresses", True)

    assert selects(service, changed(POD, "status.conditions", []))


def test_without_a_selector_no_pod_is_selected() -> None:
    assert not selects(changed(SERVICE, "spec.selector", {}), POD)


def test_a_headless_service_has_the_names_of_its_ready_pods() -> None:
    service = changed(SERVICE, "spec.clusterIP", "None")
    pod = changed(POD, "spec", {"hostname": "operator-0", "subdomain": "operator", "containers": []})
    unready = changed(changed(pod, "status.conditions", []), "status.podIP", "127.64.7.8")

    records = [*records_of(service, [pod, unready]), *records_of(changed(SERVICE, "metadata.name", "web"), [pod])]

    assert hosts_of(pod, records) == (
        "127.0.0.1\tlocalhost\n"
        "127.64.7.7\toperator-0.operator.hypershift.svc.cluster.local operator-0\n"
        "127.64.7.7\toperator operator.hypershift operator.hypershift.svc operator.hypershift.svc.cluster.local\n"
        "127.64.7.7\toperator-0.operator operator-0.operator.hypershift operator-0.operator.hypershift.svc "
        "operator-0.operator.hypershift.svc.cluster.local\n"
        "127.32.0.9\tweb web.hypershift web.hypershift.svc web.hypershift.svc.cluster.local\n"
    )
    elsewhere = changed(POD, "metadata.namespace", "other")
    assert hosts_of(elsewhere, records[:1]).splitlines()[2] == (
        "127.64.7.7\toperator.hypershift operator.hypershift.svc operator.hypershift.svc.cluster.local"
    )


@pytest.mark.parametrize(
    ("target", "port"),
    [("manager", 9443), (9000, 9000), (None, 8443), ("other", None)],
    ids=["a name", "a number", "the same", "a name that the pod does not have"],
)
def test_the_target_port_is_the_pods(target: str | int | None, port: int | None) -> None:
    service = changed(SERVICE, "spec.ports", [{"port": 8443} | ({} if target is None else {"targetPort": target})])

    assert target_of(service, 8443, POD) == (None if port is None else ("127.64.7.7", port))
