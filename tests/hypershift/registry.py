"""A container registry on loopback with what HyperShift's operators look up: a release, and labels of their image."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import ssl
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import yaml


def _words(file: str) -> list[str]:
    return Path(__file__).with_name(file).read_text(encoding="utf-8").split()


VERSION: Final = "4.20.0"
_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG: Final = "application/vnd.docker.container.image.v1+json"
_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_PATH: Final = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs)/(?P<reference>[^/]+)")
_HYPERSHIFT: Final = "hypershift/hypershift"
_RELEASE: Final = "openshift/release"
# What the hypershift-operator reads of the control-plane operator's image (hostedcluster_controller.go:131-137), as
# HyperShift's Dockerfile.control-plane has it.
_LABELS: Final = {f"io.openshift.hypershift.{name}": "true" for name in _words("labels.txt")}
# The components of a release that the control-plane operator takes images from.
_COMPONENTS: Final = _words("components.txt")


@dataclass(frozen=True)
class Registry:
    """Where it answers (`host:port`), and its images by digest."""

    host: str
    hypershift: str = field(default="", kw_only=True)
    release: str = field(default="", kw_only=True)


@dataclass
class _Content:
    """Blobs and manifests by digest, and digests by tag."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def add(self, blob: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
        self.blobs[digest] = blob
        return digest

    def image(self, name: str, tag: str, labels: Mapping[str, str], files: Mapping[str, str]) -> str:
        """Add an image of one layer; returns its digest."""
        layer = _archive(files)
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": dict(labels)},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            "history": [{"created_by": "tests"}],
        }
        packed = gzip.compress(layer, mtime=0)
        encoded = json.dumps(config).encode()
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {"mediaType": _CONFIG, "size": len(encoded), "digest": self.add(encoded)},
            "layers": [{"mediaType": _LAYER, "size": len(packed), "digest": self.add(packed)}],
        }
        digest = self.add(json.dumps(manifest).encode())
        self.tags[f"{name}:{tag}"] = digest
        return digest


@contextmanager
def running_registry(server_certificate: Path) -> Iterator[Registry]:
    """The registry, behind TLS with this certificate (PEM with its key), for loopback."""
    content = _Content()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(content))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    host = f"127.0.0.1:{server.server_address[1]}"
    hypershift = f"{host}/{_HYPERSHIFT}@{content.image(_HYPERSHIFT, VERSION, _LABELS, {})}"
    content.image(_RELEASE, VERSION, {"io.openshift.release": VERSION}, _release(host, hypershift))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Registry(host, hypershift=hypershift, release=f"{host}/{_RELEASE}:{VERSION}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _release(host: str, hypershift: str) -> dict[str, str]:
    """The two files of a release image that HyperShift reads (`support/releaseinfo/registryclient_provider.go`)."""
    images = {name: f"{host}/openshift/{name}@sha256:{'0' * 64}" for name in _COMPONENTS} | {"hypershift": hypershift}
    versions = {"io.openshift.build.versions": f"kubernetes=1.33.0,machine-os={VERSION}"}
    annotated = {"hyperkube": versions, "machine-config-operator": versions}
    tags = [
        {"name": name, "from": {"kind": "DockerImage", "name": image}, "annotations": annotated.get(name, {})}
        for name, image in images.items()
    ]
    stream = {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": VERSION},
        "spec": {"lookupPolicy": {"local": False}, "tags": tags},
    }
    machines: dict[str, Any] = {"stream": "rhcos", "metadata": {}, "architectures": {"x86_64": {"artifacts": {}}}}
    boot = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "coreos-bootimages"},
        "data": {"stream": json.dumps(machines)},
    }
    return {
        "release-manifests/image-references": json.dumps(stream),
        "release-manifests/0000_50_installer_coreos-bootimages.yaml": yaml.safe_dump(boot),
    }


def _archive(files: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def _handler(content: _Content) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """The part of the distribution API that reads."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def _answer(self, *, with_body: bool) -> None:
            found = _PATH.fullmatch(self.path)
            if found is None:
                self._send(HTTPStatus.OK if self.path == "/v2/" else HTTPStatus.NOT_FOUND, b"{}", "application/json")
                return
            reference = found["reference"]
            digest = content.tags.get(f"{found['name']}:{reference}", reference)
            if (blob := content.blobs.get(digest)) is None:
                self._send(HTTPStatus.NOT_FOUND, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}', "application/json")
                return
            kind = _MANIFEST if found["kind"] == "manifests" else "application/octet-stream"
            self._send(HTTPStatus.OK, blob if with_body else b"", kind, digest, len(blob))

        def _send(
            self, status: HTTPStatus, body: bytes, kind: str, digest: str = "", length: int | None = None
        ) -> None:
            self.send_response(status)
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            self.wfile.write(body)

    return Handler
