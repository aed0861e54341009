"""A swap that is ahead of Entra's replication, against the local cloud's Entra ID and its replicas."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from azure.core.exceptions import ClientAuthenticationError
from cryptography import x509

from identity.clouds import LOCAL_TENANT_ID
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import EventKind
from identity.credentials.mounted_file import MountedFile
from identity.credentials.rotation import Rotation, TokenRequest
from identity.credentials.sign_in import sign_in
from localcloud.testing.azure import KeyCredential, LocalAzure, assemble, open_store
from localcloud.testing.azure import entra_app as app
from localcloud.testing.faults import Faults
from localcloud.testing.hosts import ServiceServer, ensure_certificate
from localcloud.testing.running import moved_ahead
from tests.unit.identity.credentials.watching import ARM, Scene, connect
from tests.unit.identity.credentials.world import ARM_SCOPE, document

VAULT = TokenRequest(("https://vault.azure.net/.default",))


@dataclass
class Tenant:
    """An application in a tenant of which one replica is 30 s behind and the other 90 s."""

    azure: LocalAzure
    url: str
    client_id: str
    object_id: str
    registered: list[KeyCredential] = field(default_factory=list)

    def register(self, issued: IssuedCertificate) -> None:
        self.registered.append(KeyCredential.of(x509.load_pem_x509_certificate(issued.certificate_pem.encode())))
        self.azure.directory.set_key_credentials(self.object_id, self.registered)

    def document(self, issued: IssuedCertificate) -> str:
        return document(issued, self.url, tenant_id=LOCAL_TENANT_ID, client_id=self.client_id)


@pytest.fixture
def tenant(tmp_path: Path, issued: IssuedCertificate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenant]:
    """Every replica knows `issued`, registered two minutes ago."""
    ca_file, server_file = tmp_path / "ca.pem", tmp_path / "server.pem"
    ensure_certificate(ca_file, server_file)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ca_file))
    faults = Faults(replica_delays=(30.0, 90.0), principal_delay=0.0, role_delay=0.0, seed=5)
    store = open_store(tmp_path / "state.sqlite")
    azure = assemble(store, faults, authority_host="https://127.0.0.1/")
    server = ServiceServer(app(azure), server_file)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = threading.Thread(target=server.run, args=([listener],), daemon=True)
        running.start()
        with moved_ahead(timedelta(minutes=-2)):
            application = azure.directory.create_application("control plane")
            azure.directory.create_service_principal(application.app_id)
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            made = Tenant(azure, url, application.app_id, application.object_id)
            made.register(issued)
        yield made
        server.should_exit = True
        running.join(20)
    store.close()


def test_nobody_who_asks_meanwhile_is_refused(tenant: Tenant, scene: Scene) -> None:
    scene.mount.write(tenant.document(scene.issued))
    rotation = Rotation(
        MountedFile(scene.mount.path, scene.clock), connect, scope=ARM_SCOPE, clock=scene.clock, on_event=scene.events
    )
    rotation.token(ARM)
    tenant.register(scene.following)
    scene.mount.write(tenant.document(scene.following))

    for _ in range(3):  # no replica knows it
        scene.clock.advance(60)
        rotation.poll()
        assert str(scene.events.until(EventKind.UNPROVEN).problem).startswith("AADSTS700027: ")
    assert rotation.served.thumbprint == scene.issued.thumbprint
    rotation.token(VAULT)

    with moved_ahead(timedelta(seconds=60)):  # one of two does
        while rotation.served.thumbprint != scene.following.thumbprint:
            scene.clock.advance(60)
            rotation.poll()
        assert any(not _signs_in(tenant, scene.following) for _ in range(8)), "the other replica was not met"
        for _ in range(8):
            rotation.token(VAULT)
    rotation.close()


def _signs_in(tenant: Tenant, issued: IssuedCertificate) -> bool:
    bundle = (issued.private_key_pem + issued.certificate_pem).encode()
    try:
        sign_in(tenant.url, LOCAL_TENANT_ID, tenant.client_id, bundle, ARM_SCOPE)
    except ClientAuthenticationError:
        return False
    return True
