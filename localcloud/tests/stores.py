"""Stores of a local Azure that has signed tokens before: making its RSA key takes longer than most tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from localcloud.azure.local_azure import assemble
from localcloud.azure.shared.faults import NO_DELAYS
from localcloud.core.store import SEAL_KEY_BYTES, Store

_SEAL_KEY = bytes(SEAL_KEY_BYTES)


def open_store(file: Path) -> Store:
    """A store of the test's own, empty but for the signing key that all tests share."""
    file.write_bytes(_file_with_signing_key())
    return Store(file, _SEAL_KEY)


@cache
def _file_with_signing_key() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "state.sqlite")
        store = Store(file, _SEAL_KEY)
        assemble(store, NO_DELAYS, authority_host="https://127.0.0.1/").tokens.jwks()
        store.close()
        return file.read_bytes()
