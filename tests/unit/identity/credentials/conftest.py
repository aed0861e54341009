"""Fixtures of the credential tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.mounted_file import MountedFile
from identity.credentials.probe.credential_source import CredentialSource
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.report import ProofRequest
from identity.credentials.rotation import Rotation
from identity.credentials.token_credential import MountedCredential
from tests.unit.identity.credentials.watching import Clients, Events, FakeClock, Renew, Scene, WaitableProber, connect
from tests.unit.identity.credentials.world import ARM_SCOPE, LIFETIME, CsiMount, Entra, certificate, document, proof


@pytest.fixture(scope="session")
def issued() -> IssuedCertificate:
    """One certificate for every test that needs nothing special of it."""
    return certificate()


@pytest.fixture(scope="session")
def following(issued: IssuedCertificate) -> IssuedCertificate:
    """A certificate that is later than `issued` and lives for longer."""
    following = certificate(age=timedelta(0), lifetime=2 * LIFETIME)
    assert following.not_before > issued.not_before
    return following


@pytest.fixture(scope="session")
def third() -> IssuedCertificate:
    """One more certificate; the document has what it must be later than."""
    return certificate(lifetime=2 * LIFETIME)


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


@pytest.fixture
def events() -> Events:
    """What a credential reports."""
    return Events()


@pytest.fixture
def clock() -> FakeClock:
    """The present, until the test moves it."""
    return FakeClock()


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    """The clients of Entra ID that are made from now on."""
    clients = Clients()
    monkeypatch.setattr("identity.credentials.sign_in.CertificateCredential", clients)
    return clients


@pytest.fixture
def known(entra: Entra, issued: IssuedCertificate, mount: CsiMount) -> Entra:
    """An Entra that knows the mounted credential."""
    entra.registered.append(issued.certificate_pem)
    mount.write(document(issued, entra.url))
    return entra


@pytest.fixture
def served(known: Entra, mount: CsiMount, events: Events, clients: Clients) -> Iterator[MountedCredential]:
    """A mounted credential that Entra knows, first load done."""
    with MountedCredential(mount.path, on_event=events, retry_total=0) as credential:
        assert events.rest() == [EventKind.ACCEPTED, EventKind.SERVED]
        yield credential
    assert clients.open == 0


@pytest.fixture
def rotation(known: Entra, mount: CsiMount, clock: FakeClock, events: Events, clients: Clients) -> Iterator[Rotation]:
    """`issued` is served and Entra knows it; no thread looks, the test does."""
    made = Rotation(MountedFile(mount.path, clock), connect, scope=ARM_SCOPE, clock=clock, on_event=events)
    assert events.rest() == [EventKind.ACCEPTED, EventKind.SERVED]
    yield made
    made.close()
    assert clients.open == 0


@pytest.fixture
def metrics() -> Metrics:
    """What the probe counts."""
    return Metrics()


@pytest.fixture
def prober(entra: Entra, mount: CsiMount, metrics: Metrics) -> Iterator[WaitableProber]:
    """Proves the mounted credential, each time that a test calls `prove`."""
    source = CredentialSource.parse(f"file:{mount.path}", None)
    with closing(WaitableProber(source, ProofRequest.parse(proof(entra)), metrics)) as made:
        yield made


@pytest.fixture
def renew(mount: CsiMount, entra: Entra, following: IssuedCertificate) -> Renew:
    """Lets Entra ID know `following`, and mounts it."""

    def act() -> None:
        entra.registered.append(following.certificate_pem)
        mount.write(document(following, entra.url))

    return act


@pytest.fixture
def pending(
    rotation: Rotation, mount: CsiMount, entra: Entra, events: Events, following: IssuedCertificate
) -> Rotation:
    """`following`, of which Entra knows nothing yet, is mounted and was tried once."""
    mount.write(document(following, entra.url))
    rotation.poll()
    assert events.rest() == [EventKind.ACCEPTED, EventKind.UNPROVEN]
    return rotation


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> Scene:
    """All of the above by name, for a test that needs many of them."""
    return Scene(request)
