"""Services on loopback: a connection to a Service's cluster IP reaches one of its ready pods (kube-proxy's part).

The cluster IPs of the local kube-apiserver are in 127.32.0.0/11, all of which are loopback addresses on Linux. A pod's
address is a loopback address as well, which the API refuses in Endpoints, so pods are selected here.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from localcloud.kubelet.client import SERVICES
from localcloud.kubelet.cluster import ClusterCache, Key, Reflector
from localcloud.kubelet.selection import is_ready, is_terminating
from localcloud.kubernetes.calls import Object

_API: Final[Key] = ("default", "kubernetes")
_CHUNK: Final = 64 * 1024

_log = logging.getLogger(__name__)

Address = tuple[str, int]
"""Host and port."""


class ServiceProxy:
    """Listens at the cluster IP of each Service, on TCP only, as long as the Service exists."""

    def __init__(self, cluster: ClusterCache, api_server: str) -> None:
        self._cluster = cluster
        at = urlsplit(api_server)
        self._api_server = str(at.hostname), int(at.port or 443)
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._services = Reflector(cluster.client, SERVICES, self._queue.put_nowait)
        self._listening: dict[Key, dict[Address, asyncio.Server]] = {}

    async def run(self) -> None:
        """Follow the Services until cancelled, then close every listener."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._services.run())
                group.create_task(self._reconcile())
        finally:
            for servers in self._listening.values():
                for server in servers.values():
                    server.close()

    async def _reconcile(self) -> None:
        while True:
            key = await self._queue.get()
            present = self._listening.setdefault(key, {})
            wanted = addresses_of(self._services.objects.get(key))
            for address in present.keys() - wanted:
                present.pop(address).close()
            for address in wanted - present.keys():
                with suppress(OSError):
                    present[address] = await self._listen(key, address)

    async def _listen(self, key: Key, address: Address) -> asyncio.Server:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self._forward(key, address[1], reader, writer)
            finally:
                writer.close()

        try:
            return await asyncio.start_server(connected, *address)
        except OSError as error:
            # Such as a port below 1024, which needs a privilege.
            _log.warning("service %s/%s does not answer at %s:%s: %s", *key, *address, error)
            raise

    async def _forward(self, key: Key, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (target := self._target(key, port)) is None:
            return
        with suppress(OSError):
            from_target, to_target = await asyncio.open_connection(*target)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, to_target))
                    group.create_task(_copy(from_target, writer))
            finally:
                to_target.close()

    def _target(self, key: Key, port: int) -> Address | None:
        """A ready pod, None if there is none."""
        service = self._services.objects.get(key)
        if key == _API:
            return self._api_server
        if service is None:
            return None
        pods = [pod for pod in self._cluster.pods.objects.values() if selects(service, pod)]
        targets = [target for pod in pods if (target := target_of(service, port, pod)) is not None]
        return random.choice(targets) if targets else None


def addresses_of(service: Object | None) -> set[Address]:
    """The addresses of a Service: its cluster IP with each of its TCP ports; none without a cluster IP."""
    spec: Mapping[str, Any] = (service or {}).get("spec", {})
    address = spec.get("clusterIP", "None")
    if address == "None" or not address:
        return set()
    return {(address, port["port"]) for port in spec.get("ports", []) if port.get("protocol", "TCP") == "TCP"}


def selects(service: Object, pod: Object) -> bool:
    """Whether connections to the Service may reach the pod: its labels fit, and it is ready or need not be."""
    spec = service["spec"]
    selector: Mapping[str, str] = spec.get("selector", {})
    labels = pod["metadata"].get("labels", {})
    return (
        bool(selector)
        and pod["metadata"]["namespace"] == service["metadata"]["namespace"]
        and selector.items() <= labels.items()
        and not is_terminating(pod)
        and bool(pod.get("status", {}).get("podIP"))
        and (is_ready(pod) or spec.get("publishNotReadyAddresses", False))
    )


def target_of(service: Object, port: int, pod: Object) -> Address | None:
    """The pod's address behind a port of the Service, None for a named port that the pod does not have."""
    chosen = next(candidate for candidate in service["spec"]["ports"] if candidate["port"] == port)
    target = chosen.get("targetPort", port)
    if isinstance(target, str):
        ports = {declared.get("name"): declared for c in pod["spec"]["containers"] for declared in c.get("ports", [])}
        if target not in ports:
            return None
        target = ports[target]["containerPort"]
    return pod["status"]["podIP"], target


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
