"""A loader of a mounted credential, and the local cloud that it signs in to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from identity.credentials.certificate import IssuedCertificate
from tests.load.entra import EntraProcess, entra_process
from tests.unit.identity.credentials.watching import Events
from tests.unit.identity.credentials.world import CsiMount, certificate


@pytest.fixture(scope="session")
def issued() -> IssuedCertificate:
    """The certificate of every credential here; each rotation has other dates."""
    return certificate()


@pytest.fixture
def entra(issued: IssuedCertificate, monkeypatch: pytest.MonkeyPatch) -> Iterator[EntraProcess]:
    """The local cloud in a process of its own, trusted through the environment."""
    with entra_process([issued]) as running:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(running.ca_file))
        yield running


@pytest.fixture
def mount(tmp_path: Path, entra: EntraProcess, issued: IssuedCertificate) -> CsiMount:
    """A CSI volume with the credential."""
    made = CsiMount(tmp_path / "mnt" / "certs")
    made.write(entra.document(issued))
    return made


@pytest.fixture
def events() -> Events:
    """What a credential reports."""
    return Events()
