"""Fixtures of the credential tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from identity.credentials.certificate import IssuedCertificate
from tests.unit.identity.credentials.world import CsiMount, Entra, certificate


@pytest.fixture(scope="session")
def issued() -> IssuedCertificate:
    """One certificate for every test that needs nothing special of it."""
    return certificate()


@pytest.fixture
def entra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Entra]:
    """Entra ID at a loopback address, trusted through the environment."""
    directory = tmp_path / "entra"
    directory.mkdir()
    with Entra(directory) as world:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(world.ca_file))
        yield world


@pytest.fixture
def mount(tmp_path: Path) -> CsiMount:
    """An empty CSI volume."""
    return CsiMount(tmp_path / "mnt" / "certs")
