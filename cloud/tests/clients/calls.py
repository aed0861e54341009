"""What the clients are asked to do on the local cloud of `conftest.py`, and how they are run there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from localcloud.core.clouds import LOCAL_SUBSCRIPTION_ID, LocalEnvironment
from localcloud.testing.running import execute

VAULT, GROUP = "kv-etcd-local", "identity-local"
IDENTITY: Final = f"{VAULT}/registry"
"""As `localcloud exec --as` takes it."""
KEY: Final = f"https://{VAULT}.vault.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef"
_DISKS: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/{GROUP}/providers/Microsoft.Compute/disks"
CALLS: Final = {
    "disks": (
        *("https://management.azure.com/.default", "GET"),
        *(f"https://management.azure.com{_DISKS}?api-version=2025-01-02", ""),
    ),
    "key": (
        *("https://vault.azure.net/.default", "POST", f"{KEY}/encrypt?api-version=7.4"),
        json.dumps({"alg": "RSA-OAEP-256", "value": "b25l"}),
    ),
}
"""Scope, method, URL and body of a call that a role of the identity grants, at Azure's own names."""


def printed(local_cloud: LocalEnvironment, *command: str, identity: str | None = None, path: Path | None = None) -> str:
    """What a command prints that runs as the deployer, or as another identity; it must succeed."""
    signed_in = [] if identity is None else ["--as", identity]
    done = execute(local_cloud, *signed_in, "--", *command, path=path)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout
