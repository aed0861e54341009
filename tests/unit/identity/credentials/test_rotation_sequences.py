"""Whatever is mounted in whatever order, the newest good credential that Entra ID was found to know is served."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import cast

from azure.core.credentials import AccessTokenInfo
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CertificateCredential
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import Credential
from identity.credentials.mounted_file import MountedFile
from identity.credentials.rotation import Rotation
from tests.unit.identity.credentials.documents import DAY, now, pem_of, signed_by
from tests.unit.identity.credentials.watching import ARM, FakeClock
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount, document

START = now().replace(microsecond=0)
CLIENTS = ("ada", "bob", "cyd")
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Good:
    """Mount the document of `client` that is `later` seconds later than the first one."""

    client: str
    later: int

    def text(self) -> str:
        start = START + timedelta(seconds=self.later)
        return document(small_certificate(), client_id=self.client, not_before=start, not_after=START + 30 * DAY)


@dataclass(frozen=True)
class Bad:
    """Mount something that no credential is to be taken from."""

    kind: str
    later: int

    def text(self) -> str:
        good = Good(CLIENTS[0], self.later)
        match self.kind:
            case "truncated":
                return good.text()[:-40]
            case "expired":
                start = START + timedelta(seconds=self.later)
                return document(small_certificate(), client_id=good.client, not_before=start, not_after=START)
        return "" if self.kind == "empty" else "garbage \0"


@dataclass(frozen=True)
class Learn:
    """Entra ID comes to know `client`, or knows it no longer."""

    client: str
    knows: bool


steps = st.lists(
    st.one_of(
        st.builds(Good, st.sampled_from(CLIENTS), st.integers(-2, 9)),
        st.builds(Bad, st.sampled_from(("empty", "truncated", "garbage", "expired")), st.integers(-2, 9)),
        st.builds(Learn, st.sampled_from(CLIENTS), st.booleans()),
    ),
    max_size=12,
)


@dataclass
class FakeEntra:
    """Grants a token to the clients it knows, and counts the connections."""

    known: set[str] = field(default_factory=set)
    connections: int = 0

    def connect(self, credential: Credential) -> CertificateCredential:
        self.connections += 1
        return cast(CertificateCredential, FakeClient(self, credential.client_id))


@dataclass
class FakeClient:
    """As much of azure-identity's client as is used; its token is its name."""

    entra: FakeEntra
    name: str

    def get_token_info(self, *scopes: str, options: object) -> AccessTokenInfo:
        if self.name not in self.entra.known:
            raise ClientAuthenticationError("AADSTS700027: The certificate is not registered on application.")
        return AccessTokenInfo(self.name, 0)

    def close(self) -> None:
        self.entra.connections -= 1


@given(steps)
def test_the_newest_good_credential_that_entra_knows_is_served(steps: list[Good | Bad | Learn]) -> None:
    served = mounted = Good(CLIENTS[0], 0)
    entra, clock = FakeEntra({CLIENTS[0]}), FakeClock()
    with tempfile.TemporaryDirectory() as directory:
        mount = CsiMount(Path(directory, "certs"))
        mount.write(served.text())
        file = MountedFile(mount.path, clock)
        rotation = Rotation(file, entra.connect, scope=ARM_SCOPE, clock=clock, on_event=lambda event: None)
        for step in steps:
            match step:
                case Good():
                    mounted = step
                    mount.write(step.text())
                case Bad():
                    mount.write(step.text())
                case Learn(client, knows):
                    (entra.known.add if knows else entra.known.discard)(client)
            clock.now += MINUTE
            rotation.poll()
            if mounted.later > served.later and mounted.client in entra.known:
                served = mounted
            assert rotation.served.not_before == START + timedelta(seconds=served.later)
            assert rotation.served.client_id == served.client
            assert entra.connections == 1
            if served.client in entra.known:
                assert rotation.token(ARM).token == served.client


@cache
def small_certificate() -> IssuedCertificate:
    """A certificate whose key is read quickly: each example reads it some ten times."""
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505
    start, end = START - DAY, START + 60 * DAY
    certificate = signed_by(key, hashes.SHA256(), start=start, end=end)
    return IssuedCertificate(certificate.decode(), pem_of(key).decode(), "", start, end)
