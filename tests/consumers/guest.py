"""The kube-apiserver of a hosted cluster: the local cluster's own a second time, with a part of the same etcd."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from localcloud.testing.running import StateDirectory, processes
from tests.consumers.consumer import free_port
from tests.harness import LocalStack

_PREFIX: Final = "/guest"


@contextmanager
def guest(stack: LocalStack, folder: Path, **options: str) -> Iterator[httpx.Client]:
    """A running kube-apiserver with these options in the place of the local cluster's; its API as administrator."""
    running = processes.alive(StateDirectory(stack.state).pids, "kube-apiserver")
    assert running is not None
    port = free_port()
    changed = {
        "etcd-prefix": _PREFIX,
        "secure-port": str(port),
        **{name.replace("_", "-"): value for name, value in options.items()},
    }
    program, *own = Path(f"/proc/{running.pid}/cmdline").read_text().removesuffix("\0").split("\0")
    kept = [option for option in own if option.removeprefix("--").partition("=")[0] not in changed]
    command = [program, *kept, *(f"--{name}={value}" for name, value in changed.items())]
    with (
        (folder / "kube-apiserver.log").open("a") as log,
        subprocess.Popen(command, cwd=f"/proc/{running.pid}/cwd", stdout=log, stderr=log) as process,
        stack.kubernetes("administrator") as http,
    ):
        http.base_url = httpx.URL(f"https://127.0.0.1:{port}")
        try:
            while not _is_ready(http):
                assert process.poll() is None, Path(log.name).read_text()
            yield http
        finally:
            process.terminate()


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").is_success
    except httpx.ConnectError:
        return False


def encryption(folder: Path, **providers: str) -> str:
    """A file that says to encrypt Secrets by KMS, with sockets by name, as HyperShift's does.

    Source: openshift/hypershift at 3ee9615, `GenerateKMSEncryptionConfig` in
    control-plane-operator/controllers/hostedcontrolplane/v2/kas/kms/azure.go.
    """
    kms: list[dict[str, Any]] = [
        {"kms": {"apiVersion": "v2", "name": name, "endpoint": f"unix://{socket}", "timeout": "35s"}}
        for name, socket in providers.items()
    ]
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [*kms, {"identity": {}}]}],
    }
    file = folder / "encryption.json"
    file.write_text(json.dumps(document))
    return str(file)


def in_etcd(stack: LocalStack, secret: str) -> bytes:
    """What lies in etcd of a Secret of the guest's namespace `default`."""
    socket = StateDirectory(stack.state).control_plane / "etcd.sock"
    key = base64.b64encode(f"{_PREFIX}/secrets/default/{secret}".encode()).decode()
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket))) as http:
        [found] = http.post("http://etcd/v3/kv/range", json={"key": key}).raise_for_status().json()["kvs"]
    return base64.b64decode(found["value"])
