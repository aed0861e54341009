"""A client of each identity, which signs in all the time with what a running pod would have.

A client reads its secret in the vault as the key-vault-user, as the CSI driver does for a mount, and signs in with the
document past every cache. What it has read stays its own until the vault has something newer: a pod keeps its mount.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import httpx
from azure.core.exceptions import AzureError

from identity.clouds import LocalEnvironment, local_cloud
from identity.credentials.document import InvalidCredentialError, decode
from identity.credentials.sign_in import FreshSignIns, refusal
from identity.credentials.symptom import Family
from identity.credentials.symptoms import find
from identity.outputs import StackOutputs
from ops.world.ownership import ResourceOwner

_RESOURCE: Final = "https://vault.azure.net"
_IMDS_API: Final = "2018-02-01"
_VAULT_API: Final = "7.4"
_TIMEOUT: Final = 15  # seconds
# Between two looks into the vault: the local CSI driver's own interval.
_POLL: Final = 2.0
# Sign-ins a second, of all clients together: more would take the processors from the engine on a small machine.
_RATE: Final = 20.0
# Seconds until every client has signed in once: a new role on the vault takes effect late.
_FIRST: Final = 60.0
_LONGEST_CAUSE: Final = 200


class UnreadableError(Exception):
    """The key-vault-user cannot read a secret; the message has the reason."""


@dataclass(frozen=True)
class Mounted:
    """Where one identity's credential is: the vault and its reader, the secret and how it is encoded."""

    owner: ResourceOwner
    vault: str
    reader: str  # client id of the key-vault-user
    secret: str
    encoding: str


@dataclass
class SignIns:
    """What came of one client: sign-ins that worked, and the failed ones by their cause."""

    owner: ResourceOwner
    worked: int = 0
    failed: Counter[str] = field(default_factory=Counter)


def mounted(outputs: StackOutputs[str]) -> Iterator[Mounted]:
    """The credentials that a stack has handed over, by its outputs."""
    for name, cluster in (outputs.get("hostedClusters") or {}).items():
        for row, identity in cluster["controlPlane"].items():
            yield Mounted(
                ResourceOwner(name, row),
                outputs["keyVaultName"],
                outputs["keyVaultUserClientId"],
                identity["credentialsSecretName"],
                identity["objectEncoding"],
            )


class Reader:
    """Reads secrets of the local vaults as key-vault-users; close it. Safe for many threads."""

    def __init__(self, local: LocalEnvironment) -> None:
        self._local = local
        self._cloud = local_cloud(local)
        self._http = httpx.Client(verify=local.ca_file, timeout=_TIMEOUT, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def read(self, of: Mounted) -> str:
        """The value of the secret in the vault; raises `UnreadableError`."""
        try:
            asked = {"api-version": _IMDS_API, "resource": _RESOURCE, "client_id": of.reader}
            url = f"{self._local.imds_endpoint}/metadata/identity/oauth2/token"
            token = self._answer("IMDS", self._http.get(url, params=asked, headers={"Metadata": "true"}))
            base, headers = self._cloud.vault_request(of.vault)
            secret = self._http.get(
                f"{base}/secrets/{of.secret}",
                params={"api-version": _VAULT_API},
                headers={**headers, "Authorization": f"Bearer {token['access_token']}"},
            )
            return str(self._answer(f"the vault {of.vault}", secret)["value"])
        except httpx.HTTPError as error:
            raise _unreadable(of, error) from None

    def sign_ins(self, of: Mounted, value: str) -> Callable[[], object]:
        """A function that signs in with the credential in this value, past every cache, and raises AzureError.

        After a failure take another (`FreshSignIns`). Raises `UnreadableError` if the value is no credential.
        """
        try:
            credential = decode(value, object_encoding=of.encoding)
        except InvalidCredentialError as error:
            raise _unreadable(of, error) from None
        fresh = FreshSignIns(
            credential.authority_host,
            credential.tenant_id,
            credential.client_id,
            credential.key_material.pem(),
            timeout_seconds=_TIMEOUT,
            ca_file=self._local.ca_file,
        )
        return partial(fresh.sign_in, self._cloud.arm_scope)

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


def _unreadable(of: Mounted, error: Exception) -> UnreadableError:
    return UnreadableError(f"the secret {of.secret} cannot be mounted: {' '.join(str(error).split())}")


class _Pod:
    """What a pod has: the value of its secret as it was mounted, and a client that signs in with it.

    Raises `UnreadableError` if it cannot be mounted.
    """

    def __init__(self, reader: Reader, of: Mounted) -> None:
        self._reader = reader
        self._of = of
        self._value = reader.read(of)
        self._sign_in: Callable[[], object] | None = reader.sign_ins(of, self._value)

    def poll(self) -> None:
        """Mount what the vault has now. What cannot be read leaves the mount as it is."""
        with suppress(UnreadableError):
            value = self._reader.read(self._of)
            if value != self._value:
                self._value, self._sign_in = value, self._reader.sign_ins(self._of, value)

    def attempt(self, found: SignIns) -> None:
        """Sign in once and note what came of it."""
        try:
            if self._sign_in is None:
                self._sign_in = self._reader.sign_ins(self._of, self._value)
            self._sign_in()
        except AzureError as error:
            self._sign_in = None
            found.failed[cause_of(error)] += 1
        else:
            found.worked += 1


class Clients:
    """Lets a client of each mounted credential sign in, each in a thread of its own, until `stop`."""

    def __init__(self, reader: Reader, credentials: Sequence[Mounted]) -> None:
        self._reader = reader
        self._stopped = threading.Event()
        self._began = threading.Barrier(len(credentials) + 1) if credentials else None
        self._pause = len(credentials) / _RATE
        self.results = [SignIns(each.owner) for each in credentials]
        self._threads = [
            threading.Thread(target=self._run, args=(each, found), daemon=True)
            for each, found in zip(credentials, self.results, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Return once every client has signed in, or has given up after a minute."""
        if self._began is not None:
            with suppress(threading.BrokenBarrierError):
                self._began.wait()

    def stop(self) -> None:
        """Let the sign-ins under way end."""
        self._stopped.set()
        if self._began is not None:
            self._began.abort()
        for thread in self._threads:
            thread.join()

    def _run(self, of: Mounted, found: SignIns) -> None:
        looked = time.monotonic()
        pod = self._first(of, found)
        assert self._began is not None, "there is a client"
        with suppress(threading.BrokenBarrierError):
            self._began.wait()
        while pod is not None and not self._stopped.wait(self._pause):
            if time.monotonic() - looked >= _POLL:
                looked = time.monotonic()
                pod.poll()
            pod.attempt(found)

    def _first(self, of: Mounted, found: SignIns) -> _Pod | None:
        """The pod after its first sign-in, None if that does not come; failures before it do not count."""
        until = time.monotonic() + _FIRST
        while not self._stopped.is_set():
            tried = SignIns(of.owner)
            try:
                pod = _Pod(self._reader, of)
                pod.attempt(tried)
                if tried.worked:
                    found.worked += 1
                    return pod
            except UnreadableError as error:
                tried.failed[str(error)] += 1
            if time.monotonic() > until:
                found.failed.update(tried.failed)
                return None
            self._stopped.wait(_POLL / 4)
        return None


def cause_of(error: BaseException) -> str:
    """Entra ID's code with what it means for a client that worked before; else its own words, in one line."""
    refused = refusal(error)
    if refused.code is None:
        return f"Entra ID was not reached: {refused.text}"[:_LONGEST_CAUSE]
    symptom = find(refused.code, Family.ENTRA_ID)
    return f"{refused.code}: {symptom.cause if symptom else refused.text}"[:_LONGEST_CAUSE]


def mounted_anew(reader: Reader, credentials: Sequence[Mounted]) -> list[SignIns]:
    """What a pod that starts now comes to: each secret is read and signed in with once."""
    found = []
    for each in credentials:
        result = SignIns(each.owner)
        try:
            _Pod(reader, each).attempt(result)
        except UnreadableError as error:
            result.failed[str(error)] += 1
        found.append(result)
    return found


@contextmanager
def signing_in(reader: Reader, credentials: Sequence[Mounted]) -> Iterator[Clients]:
    """Clients of these credentials, all of which have begun, until the end of the block."""
    clients = Clients(reader, credentials)
    try:
        clients.wait()
        yield clients
    finally:
        clients.stop()
