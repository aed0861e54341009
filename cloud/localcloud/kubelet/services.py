"""Services on loopback: a connection to a Service's cluster IP reaches one of its ready pods (kube-proxy's part).

The cluster IPs of the local kube-apiserver are in 127.32.0.0/11, all of which are loopback addresses on Linux. A pod's
address is a loopback address as well, which the API refuses in Endpoints, so pods are selected here. A server of DNS
would need a port that only root may open: what it would answer is in each pod's hosts file.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
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

_ZONE: Final = "svc.cluster.local"


@dataclass(frozen=True)
class Record:
    """An address of a Service, or of one of its pods, by the name that DNS has for it in its namespace."""

    address: str
    namespace: str
    name: str


class ServiceProxy:
    """Listens at the cluster IP of each Service, on TCP only, as long as the Service exists.

    `named` is called with the records of all Services whenever they may have changed.
    """

    def __init__(
        self, cluster: ClusterCache, api_server: str, named: Callable[[Sequence[Record]], None] = lambda _: None
    ) -> None:
        self._cluster = cluster
        at = urlsplit(api_server)
        self._api_server = str(at.hostname), int(at.port or 443)
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._services = Reflector(cluster.client, SERVICES, self._queue.put_nowait)
        self._listening: dict[Key, dict[Address, asyncio.Server]] = {}
        self._named = named
        self._renamed = asyncio.Event()

    def pod_changed(self) -> None:
        """A pod may have begun or ceased to be one of a Service's."""
        self._renamed.set()

    async def run(self) -> None:
        """Follow the Services until cancelled, then close every listener."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._services.run())
                group.create_task(self._reconcile())
                group.create_task(self._name())
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

            self._renamed.set()

    async def _name(self) -> None:
        while True:
            await self._renamed.wait()
            self._renamed.clear()
            pods = self._cluster.pods.objects.values()
            self._named([record for service in self._services.objects.values() for record in records_of(service, pods)])

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


def records_of(service: Object, pods: Iterable[Object]) -> Iterator[Record]:
    """What DNS knows of a Service: its cluster IP, or the pods of a headless one, each by its host name, too."""
    namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
    address = service["spec"].get("clusterIP", "")
    if address and address != "None":
        yield Record(address, namespace, name)
    for pod in pods if address == "None" else ():
        if selects(service, pod):
            yield Record(pod["status"]["podIP"], namespace, name)
            if (spec := pod["spec"]).get("subdomain") == name and spec.get("hostname"):
                yield Record(pod["status"]["podIP"], namespace, f"{spec['hostname']}.{name}")


def hosts_of(pod: Object, records: Sequence[Record]) -> str:
    """The hosts file of a pod: its own names (`pkg/kubelet/kubelet_pods.go`), and what its `resolv.conf` would find."""
    namespace, spec = pod["metadata"]["namespace"], pod["spec"]
    own = spec.get("hostname") or pod["metadata"]["name"]
    full = [f"{own}.{spec['subdomain']}.{namespace}.{_ZONE}"] if spec.get("subdomain") else []
    lines = [("127.0.0.1", ["localhost"]), (pod["status"]["podIP"], [*full, own])]
    for record in records:
        outside = f"{record.name}.{record.namespace}"
        names = [outside, f"{outside}.svc", f"{outside}.{_ZONE}"]
        lines.append((record.address, [record.name, *names] if record.namespace == namespace else names))
    return "".join(f"{address}\t{' '.join(names)}\n" for address, names in lines)


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
