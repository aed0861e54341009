"""An API server that answers everything and records who has asked, a proxy before it, and programs for its users."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

_PLUGIN = """#!/bin/sh
printf '%s' "$KUBERNETES_EXEC_INFO" >"$(dirname "$0")/info.json"
cat "$(dirname "$0")/answer.json"
"""
EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "./plugin.sh",
    "args": None,
    "env": None,
    "interactiveMode": "Never",
}


@dataclass
class Server:
    """An API server that answers everything, and records who has asked; `folder` has its certificates."""

    folder: Path
    port: int
    proxy_port: int
    seen: list[dict[str, Any]]

    @property
    def authority(self) -> str:
        return base64.b64encode((self.folder / "ca.crt").read_bytes()).decode()

    def plugin(self, **status: Any) -> int:
        """Let the program print this status."""
        answer = {"apiVersion": EXEC["apiVersion"], "kind": "ExecCredential", "status": status}
        return (self.folder / "answer.json").write_text(json.dumps(answer))

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder, authority, seen = tmp_path_factory.mktemp("kube"), trustme.CA(), []
    authority.cert_pem.write_to_path(folder / "ca.crt")
    for name, names in {"server": ("localhost",), "inner": ("kubernetes.internal",), "me": ()}.items():
        issued = authority.issue_cert(*names, common_name=name, key_type=trustme.KeyType.RSA)
        issued.cert_chain_pems[0].write_to_path(folder / f"{name}.crt")
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
    (folder / "plugin.sh").write_text(_PLUGIN)
    (folder / "plugin.sh").chmod(0o755)
    (folder / "token").write_text("from-a-file\n")
    (folder / "empty").write_text("")

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            subject = (self.connection.getpeercert() or {}).get("subject")
            headers = {
                name.lower(): self.headers.get_all(name)
                for name in self.headers
                if name.lower() == "authorization" or name.lower().startswith("impersonate-")
            }
            seen.append({"subject": subject, **headers})
            body = b'{"kind": "APIVersions", "versions": ["v1"]}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def shown(socket: ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        """The certificate of the name that a client asks for."""
        socket.context = contexts["inner" if name == "kubernetes.internal" else "server"]

    contexts = {}
    for name in ("server", "inner"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
        context.load_verify_locations(folder / "ca.crt")
        context.verify_mode = ssl.CERT_OPTIONAL
        contexts[name] = context
    contexts["server"].sni_callback = shown  # type: ignore[assignment]
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.socket = contexts["server"].wrap_socket(http.socket, server_side=True)
    proxy = proxy_to(http.server_port)
    for listener in (http, proxy):
        threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield Server(folder, http.server_port, proxy.server_port, seen)
    http.shutdown()
    proxy.shutdown()


def proxy_to(port: int) -> ThreadingHTTPServer:
    """A proxy that leads every name to one port."""

    class Tunnel(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_CONNECT(self) -> None:
            upstream = socket.create_connection(("127.0.0.1", port))
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=pumped, args=(upstream, self.connection), daemon=True)
            back.start()
            pumped(self.connection, upstream)
            back.join(5)
            self.close_connection = True

    def pumped(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Tunnel)
