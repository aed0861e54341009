"""What lies in the store, and what a second server over the same store serves."""

from __future__ import annotations

import base64
from pathlib import Path

from localcloud.core.store import Store
from localcloud.kubernetes.kinds import BY_PLURAL
from localcloud.kubernetes.objects import Objects
from localcloud.testing.kubernetes import secret

SECRETS = BY_PLURAL["", "v1", "secrets"]
MARKER = "marker-2f7c90"


def test_secret_values_are_stored_sealed(kubernetes_store: Store, tmp_path: Path) -> None:
    objects = Objects(kubernetes_store)

    objects.create(SECRETS, "default", secret(key=MARKER))

    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert MARKER.encode() not in written
    assert base64.b64encode(MARKER.encode()) not in written
    assert objects.get(SECRETS, "default", "pull")["data"]["key"] == base64.b64encode(MARKER.encode()).decode()


def test_a_restart_keeps_objects_and_versions(kubernetes_store: Store) -> None:
    before = Objects(kubernetes_store)
    made = before.create(SECRETS, "default", secret(key="v")).document

    after = Objects(kubernetes_store)

    assert after.get(SECRETS, "default", "pull") == made
    assert after.version == before.version
