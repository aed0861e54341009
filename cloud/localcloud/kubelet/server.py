"""The kubelet's own server, which kube-apiserver asks for the logs of pods and for commands in them.

Nobody else gets in, because no other user of this machine has the certificate. Sources in kubernetes:
`pkg/kubelet/server/server.go` (paths), `pkg/registry/core/pod/strategy.go` (`streamParams`: a command's options).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Final

import httpx
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from localcloud.core.serving import ServiceServer
from localcloud.core.state_directory import StateDirectory
from localcloud.kubelet.client import NODES, ApiClient
from localcloud.kubernetes.calls import ApiError, Object
from localcloud.kubernetes.errors import StatusError
from localcloud.kubernetes.pod_output import EXEC, LOG, PodOutput

_log = logging.getLogger(__name__)
_RETRY: Final = 1.0  # seconds
_ADDRESS: Final = "127.0.0.1"
# The verbs that are no subresources of the API by the same name.
_VERBS: Final = {"containerLogs": LOG, "portForward": "portforward"}
# The options of a command by their names at the API.
_STREAMS: Final = {"input": "stdin", "tty": "tty"}
# No load balancer of a guest cluster leads to this node, whose machine no cloud knows.
_LABELS: Final = {"node.kubernetes.io/exclude-from-external-load-balancers": ""}


class KubeletServer:
    """Serves the pods that `pods` finds by namespace and name; `name` is the node's."""

    def __init__(self, state: StateDirectory, name: str, pods: Callable[[], Mapping[tuple[str, str], Object]]) -> None:
        self._state = state
        self._name = name
        self._pods = pods
        self._output = PodOutput(state.root)

    async def run(self, client: ApiClient) -> None:
        """Register the node with the server's port, and serve."""
        pod, container = "/{namespace}/{name}", "/{namespace}/{name}/{container}"
        routes = (Route(f"/{{verb}}{path}", self._answer, methods=["GET", "POST"]) for path in (pod, container))
        app = Starlette(routes=[WebSocketRoute(f"/{EXEC}{container}", self._execute), *routes])
        with socket.create_server((_ADDRESS, 0)) as listener:
            while not await self._is_registered(client, listener.getsockname()[1]):
                await asyncio.sleep(_RETRY)
            server = ServiceServer(app, self._state.server_file, client_file=self._state.kubelet_client_file)
            await server.serve(sockets=[listener])

    async def _is_registered(self, client: ApiClient, port: int) -> bool:
        """Write the node; whether that succeeded."""
        status = {
            "addresses": [{"type": "InternalIP", "address": _ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        }
        try:
            if await client.get(NODES, "", self._name) is None:
                await client.create(NODES, "", {"metadata": {"name": self._name, "labels": _LABELS}})
            await client.merge(NODES, "", self._name, {"status": status}, subresource="status")
        except (ApiError, httpx.HTTPError) as error:
            _log.warning("node %s is not registered: %s", self._name, error)
            return False
        return True

    async def _answer(self, request: Request) -> Response:
        path = request.path_params
        subresource = _VERBS.get(path["verb"], path["verb"])
        try:
            return self._output.answer(self._pod(path), subresource, _query(path, request.query_params))
        except StatusError as error:
            # kube-apiserver wraps the words of a log's refusal, and hands on any other as it is.
            return PlainTextResponse(error.message, error.code) if subresource == LOG else error.answer()

    async def _execute(self, websocket: WebSocket) -> None:
        path = websocket.path_params
        await self._output.execute(websocket, lambda: self._pod(path), _query(path, websocket.query_params))

    def _pod(self, path: Mapping[str, str]) -> Object:
        if (pod := self._pods().get((path["namespace"], path["name"]))) is None:
            raise StatusError(404, "NotFound", f"pod {path['name']} is not on node {self._name}")
        return pod


def _query(path: Mapping[str, str], query: QueryParams) -> QueryParams:
    """A request's options by the API's names; the container is in the path."""
    options = [(_STREAMS.get(name, name), "true" if name in _STREAMS else value) for name, value in query.multi_items()]
    return QueryParams([*options, ("container", path.get("container", ""))])
