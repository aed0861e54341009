"""Clients that sign in all the time and past every cache, each in its own way, and count what came of it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self

import pytest
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.identity import CertificateCredential, ManagedIdentityCredential
from azure.keyvault.secrets import SecretClient
from cryptography import x509

from identity.credentials.certificate import thumbprint
from identity.credentials.sign_in import refusal
from identity.credentials.token_credential import MountedCredential
from tests.harness import LocalStack
from tests.msi_dataplane import SigningIn

_SCOPE: Final = "https://management.core.windows.net//.default"
# A claims challenge is never answered from a cache.
_CLAIMS: Final = '{"access_token": {"nbf": {"essential": true}}}'
_SOON: Final = 120.0  # seconds until a client has seen a renewal; the kubelet looks every two
# Seconds between two sign-ins of a client: without it they would take the processors from what they watch.
_PAUSE: Final = 0.1


class _FailedError(Exception):
    """A sign-in of msi-dataplane failed; the text is its own."""


class Client:
    """Signs in by `sign_in`, which returns the certificate's thumbprint, with pauses (seconds) until its block ends.

    Attributes:
        sign_ins: how many there were with each certificate, by thumbprint.
        refusals: each refusal of Entra ID or the vault, and whatever else went wrong with the client.
        unreached: sign-ins that got no answer.
    """

    def __init__(self, sign_in: Callable[[], str], *, pause: float = _PAUSE) -> None:
        self.sign_ins: Counter[str] = Counter()
        self.refusals: list[str] = []
        self.unreached: list[str] = []
        self._sign_in = sign_in
        self._pause = pause
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def failures(self) -> list[str]:
        """Every sign-in that did not work."""
        return self.refusals + self.unreached

    def await_certificates(self, number: int) -> None:
        """Return once the client has signed in with so many certificates."""
        self._await(lambda: len(self.sign_ins) >= number)

    def await_certificate(self, thumbprint: str) -> None:
        """Return once the client has signed in with this certificate."""
        self._await(lambda: thumbprint in self.sign_ins)

    def await_sign_ins(self, number: int) -> None:
        """Return after so many sign-ins more."""
        wanted = self.sign_ins.total() + number
        self._await(lambda: self.sign_ins.total() >= wanted)

    def await_refusal(self, thumbprint: str) -> None:
        """Return once the client has been refused with this certificate."""
        self._await(lambda: any("AADSTS700027" in message and thumbprint in message for message in self.refusals))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the sign-in that is under way end."""
        self._stopped.set()
        self._thread.join()

    def _await(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, _SOON), (dict(self.sign_ins), self.failures[-3:])

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                used = self._sign_in()
            except Exception as error:
                (self.unreached if _is_unanswered(error) else self.refusals).append(str(error))
            else:
                self.sign_ins[used] += 1
            with self._changed:
                self._changed.notify_all()
            self._stopped.wait(self._pause)


def _is_unanswered(error: Exception) -> bool:
    is_sign_in = isinstance(error, AzureError | _FailedError)
    return is_sign_in and refusal(error).code is None and getattr(error, "status_code", None) is None


def read(file: Path) -> dict[str, Any]:
    """The credential document in a mounted file."""
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


def bare_sign_in(document: Mapping[str, Any]) -> str:
    """Sign in as any program could with what the document holds; returns the certificate's thumbprint."""
    bundle = base64.b64decode(document["client_secret"])
    with CertificateCredential(
        document["tenant_id"],
        document["client_id"],
        certificate_data=bundle,
        authority=document["authentication_endpoint"],
        disable_instance_discovery=True,
        retry_total=0,
    ) as credential:
        credential.get_token(_SCOPE)
    return thumbprint(x509.load_pem_x509_certificates(bundle)[0])


def await_refusal(document: Mapping[str, Any]) -> None:
    """Return once the document's certificate is refused: a slow replica still knows what was removed a moment ago."""
    ends_at = time.monotonic() + _SOON
    refused: str | None = None
    while refused is None and time.monotonic() < ends_at:
        try:
            bare_sign_in(document)
        except ClientAuthenticationError as error:
            refused = refusal(error).code
    assert refused == "AADSTS700027"


@contextmanager
def signing_in(stack: LocalStack, file: Path, *, pause: float = _PAUSE) -> Iterator[dict[str, Client]]:
    """A client of each kind, with the credential of a mounted file, until the end of the block.

    `pause`: seconds between two sign-ins of a client.

    `vault` is quicker than any pod: it reads the file's secret in the vault again for each sign-in.
    """
    with ExitStack() as ends:
        ours = ends.enter_context(MountedCredential(file))
        vault = ends.enter_context(secrets_of(stack))

        def sign_in_with_ours() -> str:
            ours.get_token(_SCOPE, claims=_CLAIMS)
            return ours.credential.thumbprint

        def sign_in_from_the_vault() -> str:
            return bare_sign_in(json.loads(vault.get_secret(file.name).value or ""))

        # The backstop alone sees a swap of the CSI driver's link; upstream it is six hours long.
        clients = {"msi-dataplane": ends.enter_context(upstream_client(stack, file, backstop="1s", pause=pause))}
        for name, way in {
            "our loader": sign_in_with_ours,
            "azure-identity": lambda: bare_sign_in(read(file)),
            "vault": sign_in_from_the_vault,
        }.items():
            clients[name] = ends.enter_context(Client(way, pause=pause))
        yield clients


@contextmanager
def upstream_client(stack: LocalStack, file: Path, *, backstop: str = "6h", pause: float = _PAUSE) -> Iterator[Client]:
    """A client with the real msi-dataplane, which reads the file again after each `backstop`; `pause` in seconds."""
    with SigningIn(file, stack.environment.ca_file, backstop=backstop, pause=f"{pause}s") as process:

        def sign_in() -> str:
            signed_in = process.next()
            if signed_in.error:
                raise _FailedError(signed_in.error)
            return signed_in.thumbprint

        with Client(sign_in, pause=0) as client:  # the process makes its pauses itself
            yield client


def report(clients: Mapping[str, Client]) -> str:
    """What came of it, a line for each client."""
    heading = f"\n{'client':16}{'sign-ins':>10}{'certificates':>14}{'refused':>9}{'unreached':>11}"
    lines = [
        f"{name:16}{client.sign_ins.total():10}{len(client.sign_ins):14}{len(client.refusals):9}{len(client.unreached):11}"
        for name, client in clients.items()
    ]
    return "\n".join([heading, *lines])


@contextmanager
def secrets_of(stack: LocalStack) -> Iterator[SecretClient]:
    """The stack's vault as the key-vault-user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", stack.environment.imds_endpoint)
        user = ManagedIdentityCredential(client_id=stack.outputs["keyVaultUserClientId"])
        # The challenge names the real resource, https://vault.azure.net, which a loopback address cannot match.
        endpoint = stack.environment.key_vault_endpoint
        with SecretClient(endpoint, user, verify_challenge_resource=False, retry_total=0) as client:
            yield client
