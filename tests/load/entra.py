"""The local cloud's Entra ID in a process of its own: what it uses is not counted as the loader's."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from cryptography import x509
from starlette.types import ASGIApp, Receive, Scope, Send

from identity.clouds import LOCAL_TENANT_ID
from identity.credentials.certificate import IssuedCertificate
from localcloud.testing.azure import KeyCredential, LocalAzure, assemble, entra_app, open_store
from localcloud.testing.faults import NO_DELAYS, FaultHolder, HeldAnswer, HeldFaults
from localcloud.testing.hosts import ensure_certificate, running
from localcloud.testing.running import moved_ahead
from tests.unit.identity.credentials.world import document

_PATIENCE: Final = 60  # seconds until a process that does not answer is a failure
_AWAY: Final = HeldFaults((HeldAnswer("entra", status=None),))


@dataclass(frozen=True)
class EntraProcess:
    """A tenant with one application, which knows the certificates it was started with."""

    url: str
    client_id: str
    ca_file: Path
    _faults: Path
    _pipe: Connection

    @property
    def requests(self) -> int:
        """How many requests have reached Entra ID so far, those without an answer among them."""
        return self._ask("requests")

    @property
    def sign_ins(self) -> int:
        """How many of them asked for a token."""
        return self._ask("sign-ins")

    def advance(self, seconds: float) -> None:
        """Let time pass there."""
        self._ask(seconds)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Within the block each request to Entra ID ends without an answer."""
        self._faults.write_text(_AWAY.to_json(), encoding="utf-8")
        try:
            yield
        finally:
            self._faults.unlink()

    def document(self, issued: IssuedCertificate, *, cut: int = 0) -> str:
        """The credential document of a certificate, so many seconds shorter at its beginning and at its end."""
        return document(
            issued,
            self.url,
            tenant_id=LOCAL_TENANT_ID,
            client_id=self.client_id,
            not_before=issued.not_before + timedelta(seconds=cut),
            not_after=issued.not_after - timedelta(seconds=cut),
        )

    def _ask(self, question: str | float | None) -> int:
        self._pipe.send(question)
        assert self._pipe.poll(_PATIENCE), "the process does not answer"
        answer: int = self._pipe.recv()
        return answer


@contextmanager
def entra_process(certificates: Sequence[IssuedCertificate]) -> Iterator[EntraProcess]:
    """A running one, which ends with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        faults = folder / "faults.json"
        ca_file, server_file = folder / "ca.pem", folder / "server.pem"
        ensure_certificate(ca_file, server_file)
        known = [certificate.certificate_pem for certificate in certificates]
        process = context.Process(target=_serve, args=(folder / "state.sqlite", server_file, faults, known, theirs))
        process.start()
        try:
            assert ours.poll(_PATIENCE), "the process does not start"
            url, client_id = ours.recv()
            made = EntraProcess(url, client_id, ca_file, faults, ours)
            yield made
            made._ask(None)
        finally:
            process.terminate()
            process.join(_PATIENCE)


class _Counted:
    """Around Entra ID."""

    def __init__(self, app: ASGIApp, counts: dict[object, int]) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._counts["requests"] += 1
            self._counts["sign-ins"] += scope["path"].endswith("/token")
        await self._app(scope, receive, send)


def _serve(state: Path, server_file: Path, faults: Path, known: Sequence[str], pipe: Connection) -> None:
    counts: dict[object, int] = {"requests": 0, "sign-ins": 0}
    store = open_store(state)
    azure = assemble(store, NO_DELAYS, authority_host="https://127.0.0.1/", holder=FaultHolder(faults))
    client_id = _application(azure, known)
    entra = entra_app(azure)
    entra.add_middleware(_Counted, counts=counts)
    with ExitStack() as ends:
        url = ends.enter_context(ends.enter_context(running(server_file)).serving(entra))
        pipe.send((url, client_id))
        while (question := pipe.recv()) is not None:
            if isinstance(question, float):
                ends.enter_context(moved_ahead(timedelta(seconds=question)))
            pipe.send(counts.get(question, 0))
        pipe.send(0)
    store.close()


def _application(azure: LocalAzure, known: Sequence[str]) -> str:
    """One with these certificates, known to the tenant's only replica; returns its client id."""
    application = azure.directory.create_application("control plane")
    azure.directory.create_service_principal(application.app_id)
    keys = [KeyCredential.of(x509.load_pem_x509_certificate(pem.encode())) for pem in known]
    azure.directory.set_key_credentials(application.object_id, keys)
    return application.app_id
