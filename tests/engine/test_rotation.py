"""Renewals before their time on the real engine, with clients that sign in all the while."""

from __future__ import annotations

import base64
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CertificateCredential

from identity.credentials.token_credential import MountedCredential
from tests.harness import LocalStack

_SCOPE = "https://management.core.windows.net//.default"
# A claims challenge is never answered from a cache.
_CLAIMS = '{"access_token": {"nbf": {"essential": true}}}'
_SOON = 30.0  # seconds until a client has seen a renewal; the kubelet looks every two


@pytest.fixture(autouse=True)
def trusted(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients trust the local cloud's certificate authority."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)


class Client:
    """Signs in without pause until it is stopped, and counts by which certificate, and every failure."""

    def __init__(self, sign_in: Callable[[], str]) -> None:
        self.sign_ins: Counter[str] = Counter()
        self.failures: list[str] = []
        self._sign_in = sign_in
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def await_certificate(self, number: int) -> None:
        """Return once the client has signed in with its `number`-th certificate."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.sign_ins) >= number or self.failures, _SOON)

    def stop(self) -> None:
        """Let the sign-in that is under way end."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                used = self._sign_in()
            except ClientAuthenticationError as error:
                self.failures.append(str(error))
                self._stopped.set()
            else:
                self.sign_ins[used] += 1
            with self._changed:
                self._changed.notify_all()


def _file(stack: LocalStack, workload: str, secret: str) -> Path:
    return Path(stack.environment.mounts_dir, "clusters-hc1", workload, "mnt/certs", secret)


def _bare_sign_in(document: dict[str, Any]) -> str:
    """Sign in as any program could; returns what the certificate is told by."""
    CertificateCredential(
        document["tenant_id"],
        document["client_id"],
        certificate_data=base64.b64decode(document["client_secret"]),
        authority=document["authentication_endpoint"],
        disable_instance_discovery=True,
    ).get_token(_SCOPE)
    return str(document["not_before"])


def _read(file: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


@contextmanager
def _clients(file: Path) -> Iterator[list[Client]]:
    with MountedCredential(file) as ours:

        def sign_in_with_ours() -> str:
            ours.get_token(_SCOPE, claims=_CLAIMS)
            return ours.credential.thumbprint

        clients = [Client(sign_in_with_ours), Client(lambda: _bare_sign_in(_read(file)))]
        try:
            yield clients
        finally:
            for client in clients:
                client.stop()


def test_three_renewals_in_a_row_without_one_failed_sign_in(stack: LocalStack) -> None:
    with _clients(_file(stack, "probe-ingress", "ingress-hc1-json")) as clients:
        for client in clients:
            client.await_certificate(1)
        for number, arguments in ((2, ()), (3, ("--force",)), (4, ("--force",))):
            printed = stack.idstack("rotate", "--identity", "ingress", *arguments).stdout
            assert "~ 3 updated" in printed, "schedule, gate and secret"
            assert "+-2 replaced" in printed, "certificate and registration"
            for client in clients:
                client.await_certificate(number)

    for client in clients:
        assert client.failures == []
        assert len(client.sign_ins) == 4
    assert stack.preview() == {}, "a run that asks for nothing changes nothing"


def test_a_renewal_too_soon_after_another_is_refused_and_changes_nothing(stack: LocalStack) -> None:
    stack.idstack("rotate", "--identity", "file")
    before = stack.inventory()

    refused = stack.idstack("rotate", "--identity", "file", check=False)

    assert refused.returncode == 1
    assert "it is too soon" in refused.stderr
    assert "hc1/file: csi-driver in azure-file-csi-driver-controller, until " in refused.stderr
    assert stack.inventory() == before


def test_a_revoked_key_no_longer_signs_in(stack: LocalStack) -> None:
    file = _file(stack, "probe-disk-csi", "azure-disk-hc1-json")
    leaked = _read(file)
    _bare_sign_in(leaked)

    with _clients(file) as clients:
        clients[1].await_certificate(1)
        stack.idstack("rotate", "--identity", "disk", "--revoke")
        clients[1].await_certificate(2)

    with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
        _bare_sign_in(leaked)
    _bare_sign_in(_read(file))
    assert stack.preview() == {}
