"""Velero with its Azure plugin, as OADP runs it on a management cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localcloud.testing.kubernetes import client_of
from tests.consumers.consumer import free_port, program

VELERO: Final = "velero"
PLUGIN: Final = "velero-plugin-for-microsoft-azure"
NAMESPACE: Final = "openshift-adp"
_SECONDS: Final = 600


@dataclass(frozen=True)
class Velero:
    """Velero's command beside its server."""

    kubeconfig: Path
    log: Path

    def __call__(self, *arguments: str) -> str:
        """What the command prints; it fails with the server's log."""
        command = (str(program(VELERO)), *arguments, f"--namespace={NAMESPACE}", f"--kubeconfig={self.kubeconfig}")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        assert done.returncode == 0, done.stderr + self.log.read_text()
        return done.stdout


@contextmanager
def running(kubeconfig: Path, folder: Path, variables: Mapping[str, str]) -> Iterator[Velero]:
    """Velero with the local cloud's container of backups as its location."""
    (plugins := folder / "plugins").mkdir(parents=True)
    (plugins / PLUGIN).symlink_to(program(PLUGIN))
    velero = Velero(kubeconfig, folder / "log")
    # Beside its own in the container are other backups, which it refuses without a prefix.
    location = ("--bucket=etcd", "--prefix=velero", "--backup-location-config=storageAccount=backuplocal,useAAD=true")
    velero("install", "--provider=azure", f"--plugins={PLUGIN}", "--no-secret", *location)
    ports = (f"--metrics-address=127.0.0.1:{free_port()}", f"--profiler-address=127.0.0.1:{free_port()}")
    options = (f"--namespace={NAMESPACE}", f"--kubeconfig={kubeconfig}", f"--plugin-dir={plugins}", *ports)
    with (
        velero.log.open("w") as log,
        subprocess.Popen([program(VELERO), "server", *options], env=variables, stdout=log, stderr=log) as server,
    ):
        try:
            assert _phase(kubeconfig) == "Available", velero.log.read_text()
            yield velero
        finally:
            server.kill()


def _phase(kubeconfig: Path) -> str:
    """What Velero finds of its backup location, once it has looked."""
    path = f"/apis/velero.io/v1/namespaces/{NAMESPACE}/backupstoragelocations"
    watched = {"watch": "1", "timeoutSeconds": str(_SECONDS)}
    with client_of(kubeconfig) as http, http.stream("GET", path, params=watched, timeout=_SECONDS) as changes:
        found = (json.loads(line)["object"].get("status", {}).get("phase", "") for line in changes.iter_lines())
        return next(filter(None, found), "")
