"""A client of each identity, which signs in continuously with the credential that a running pod would have.

A client reads its secret in the vault as the key-vault-user, as the CSI driver does for a mount, and signs in with the
document past every cache. It keeps the document until the vault has a newer one, as a pod keeps its mount.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import httpx
from azure.core.exceptions import AzureError

from identity.clouds import LocalEnvironment, local_cloud
from identity.credentials.document import InvalidCredentialError, decode
from identity.credentials.sign_in import refusal, sign_in
from identity.outputs import StackOutputs
from identity.symptoms import Family, find
from ops.world.ownership import ResourceOwner

_RESOURCE: Final = "https://vault.azure.net"
_TIMEOUT: Final = 15  # seconds
# The poll interval of the local CSI driver, in seconds.
_POLL: Final = 2.0
# Sign-ins a second, of all clients together: more would slow the engine down on a small machine.
_RATE: Final = 20.0
# Seconds until every client has signed in once: a new role on the vault takes effect late.
_FIRST: Final = 60.0
_LONGEST_CAUSE: Final = 200


class UnreadableError(Exception):
    """The key-vault-user cannot read a secret; the message has the reason."""


@dataclass(frozen=True)
class CredentialMount:
    """The place of one identity's credential: vault, key-vault-user, secret and encoding."""

    owner: ResourceOwner
    vault: str
    key_vault_user: str  # its client id
    secret: str
    encoding: str


@dataclass
class SignIns:
    """The sign-ins of one client: those that worked, and the failed ones by cause."""

    owner: ResourceOwner
    worked: int = 0
    failed: Counter[str] = field(default_factory=Counter)


def credential_mounts(outputs: StackOutputs[str]) -> Iterator[CredentialMount]:
    """The credentials that a stack has delivered, by its outputs."""
    for name, cluster in (outputs.get("hostedClusters") or {}).items():
        for row, identity in cluster["controlPlane"].items():
            yield CredentialMount(
                ResourceOwner(name, row),
                outputs["keyVaultName"],
                outputs["keyVaultUserClientId"],
                identity["credentialsSecretName"],
                identity["objectEncoding"],
            )


class SecretReader:
    """Reads secrets of the local vaults as key-vault-users; close it. Safe for many threads."""

    def __init__(self, local: LocalEnvironment) -> None:
        self._local = local
        self._cloud = local_cloud(local)
        self._http = httpx.Client(verify=local.ca_file, timeout=_TIMEOUT, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def read(self, of: CredentialMount) -> str:
        """The value of the secret in the vault; raises `UnreadableError`."""
        try:
            parameters = {"api-version": "2018-02-01", "resource": _RESOURCE, "client_id": of.key_vault_user}
            url = f"{self._local.imds_endpoint}/metadata/identity/oauth2/token"
            token = self._answer("IMDS", self._http.get(url, params=parameters, headers={"Metadata": "true"}))
            base, headers = self._cloud.vault_request(of.vault)
            secret = self._http.get(
                f"{base}/secrets/{of.secret}",
                params={"api-version": "7.4"},
                headers={**headers, "Authorization": f"Bearer {token['access_token']}"},
            )
            return str(self._answer(f"the vault {of.vault}", secret)["value"])
        except httpx.HTTPError as error:
            raise _unreadable(of, error) from None

    def sign_ins(self, of: CredentialMount, value: str) -> Callable[[], object]:
        """A function that signs in with the credential in this value, past every cache, and raises AzureError.

        Raises `UnreadableError` if the value is not a credential.
        """
        try:
            credential = decode(value, object_encoding=of.encoding)
        except InvalidCredentialError as error:
            raise _unreadable(of, error) from None
        return partial(
            sign_in,
            credential.authority_host,
            credential.tenant_id,
            credential.client_id,
            credential.key_material.pem(),
            self._cloud.arm_scope,
            timeout_seconds=_TIMEOUT,
            ca_file=self._local.ca_file,
        )

    @staticmethod
    def _answer(service: str, response: httpx.Response) -> dict[str, Any]:
        try:
            document: dict[str, Any] = response.json()
        except ValueError:
            document = {}
        if response.is_success:
            return document
        error = document.get("error")
        code = error.get("code") if isinstance(error, dict) else error
        raise UnreadableError(f"{service} answers {response.status_code} {code or ''}".rstrip())


def _unreadable(of: CredentialMount, error: Exception) -> UnreadableError:
    return UnreadableError(f"the secret {of.secret} cannot be mounted: {' '.join(str(error).split())}")


class _Pod:
    """A pod: the mounted value of its secret, and a client that signs in with it.

    Raises `UnreadableError` if it cannot be mounted.
    """

    def __init__(self, reader: SecretReader, of: CredentialMount) -> None:
        self._reader = reader
        self._of = of
        self._value = reader.read(of)
        self._sign_in = reader.sign_ins(of, self._value)

    def poll(self) -> None:
        """Mount the value in the vault. One that cannot be read leaves the mount as it is."""
        with suppress(UnreadableError):
            value = self._reader.read(self._of)
            if value != self._value:
                self._value, self._sign_in = value, self._reader.sign_ins(self._of, value)

    def attempt(self, results: SignIns) -> None:
        try:
            self._sign_in()
        except AzureError as error:
            results.failed[cause_of(error)] += 1
        else:
            results.worked += 1


def cause_of(error: BaseException) -> str:
    """Entra ID's code with the cause of that symptom, otherwise its message, in one line."""
    refused = refusal(error)
    if refused.code is None:
        return f"Entra ID was not reached: {refused.text}"[:_LONGEST_CAUSE]
    symptom = find(refused.code, Family.ENTRA_ID)
    return f"{refused.code}: {symptom.cause if symptom else refused.text}"[:_LONGEST_CAUSE]


def sign_in_once(reader: SecretReader, credentials: Sequence[CredentialMount]) -> list[SignIns]:
    """The sign-ins of new pods: each secret is mounted and signed in with once."""
    results = [SignIns(credential.owner) for credential in credentials]
    for credential, result in zip(credentials, results, strict=True):
        try:
            _Pod(reader, credential).attempt(result)
        except UnreadableError as error:
            result.failed[str(error)] += 1
    return results


@contextmanager
def signing_in(reader: SecretReader, credentials: Sequence[CredentialMount]) -> Iterator[list[SignIns]]:
    """A client of each credential, in a thread of its own, until the end of the block; yields their sign-ins so far.

    The block begins when each has signed in once, or has given up after a minute.
    """
    results = [SignIns(credential.owner) for credential in credentials]
    pause, stopped = len(credentials) / _RATE, threading.Event()
    with ThreadPoolExecutor(len(credentials) or 1) as threads:
        try:
            pods = list(threads.map(partial(_first, reader, stopped), credentials, results))
            clients = [
                threads.submit(_sign_in_again, pod, result, pause, stopped)
                for pod, result in zip(pods, results, strict=True)
                if pod is not None
            ]
            yield results
        finally:
            stopped.set()
        for client in clients:
            client.result()


def _first(reader: SecretReader, stopped: threading.Event, of: CredentialMount, results: SignIns) -> _Pod | None:
    """The pod after its first sign-in, None if none succeeds; failures before it do not count."""
    until = time.monotonic() + _FIRST
    while not stopped.is_set():
        attempted = SignIns(of.owner)
        try:
            pod = _Pod(reader, of)
            pod.attempt(attempted)
            if attempted.worked:
                results.worked += 1
                return pod
        except UnreadableError as error:
            attempted.failed[str(error)] += 1
        if time.monotonic() > until:
            results.failed.update(attempted.failed)
            return None
        stopped.wait(_POLL / 4)
    return None


def _sign_in_again(pod: _Pod, results: SignIns, pause: float, stopped: threading.Event) -> None:
    polled = time.monotonic()
    while not stopped.wait(pause):
        if time.monotonic() - polled >= _POLL:
            polled = time.monotonic()
            pod.poll()
        pod.attempt(results)
