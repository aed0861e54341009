"""Clients of the credentials: what they count, and what they forgive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from azure.core.exceptions import ClientAuthenticationError

from ops.rehearsal import sign_ins
from ops.rehearsal.sign_ins import (
    CredentialMount,
    SecretReader,
    SignIns,
    UnreadableError,
    cause_of,
    credential_mounts,
    sign_in_once,
    signing_in,
)
from ops.world.ownership import ResourceOwner

_GONE = "AADSTS700016: Application with identifier 'x' was not found in the directory 'y'. Trace ID: 1"

_NO_CREDENTIAL = "{}"


@dataclass
class FakeReader:
    """A vault and an Entra ID that answer as a test says; each sign-in is noted by the secret's value, its name."""

    unreadable: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    seen: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    loaded: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def read(self, of: CredentialMount) -> str:
        if of.secret in self.unreadable:
            raise UnreadableError(f"the secret {of.secret} cannot be mounted: 403")
        return self.values.get(of.secret, of.secret)

    def sign_ins(self, of: CredentialMount, value: str) -> Callable[[], None]:
        self.loaded.append(value)
        if value == _NO_CREDENTIAL:
            raise UnreadableError("the secret cannot be mounted: no credential")

        def sign_in() -> None:
            with self.changed:
                self.seen.append(value)
                self.changed.notify_all()
            if value in self.refused:
                raise ClientAuthenticationError(_GONE)

        return sign_in

    def wait(self, condition: Callable[[], bool]) -> None:
        """Return once it holds."""
        with self.changed:
            assert self.changed.wait_for(condition, 30), self.seen

    @property
    def reader(self) -> SecretReader:
        return cast("SecretReader", self)


def credential(cluster: str, identity: str) -> CredentialMount:
    return CredentialMount(ResourceOwner(cluster, identity), "kv", "reader", f"{cluster}-{identity}", "utf-8")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_ins, "_RATE", 10_000.0)
    monkeypatch.setattr(sign_ins, "_POLL", 0.01)


def test_every_client_signs_in_again_and_again() -> None:
    fake, wanted = FakeReader(), [credential("hc1", "kms"), credential("hc1", "disk")]

    with signing_in(fake.reader, wanted) as results:
        fake.wait(lambda: min(fake.seen.count(client.secret) for client in wanted) >= 5)

    assert [(result.owner, result.failed.total()) for result in results] == [(client.owner, 0) for client in wanted]
    assert min(result.worked for result in results) >= 5
    with signing_in(fake.reader, []) as nobody:
        assert nobody == []


def test_a_refusal_is_counted_under_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeReader()
    with signing_in(fake.reader, [credential("hc1", "kms")]) as results:
        fake.refused.add("hc1-kms")
        seen = len(fake.seen)
        fake.wait(lambda: len(fake.seen) > seen + 2)

    [result] = results
    assert list(result.failed) == ["AADSTS700016: the tenant has no such application"]
    # Others keep Entra ID's own words.
    assert cause_of(ClientAuthenticationError("AADSTS50034: no such user. Trace ID: 7")) == "AADSTS50034: no such user."
    assert cause_of(ClientAuthenticationError("no route")).startswith("Entra ID was not reached: no route")
    monkeypatch.setattr(sign_ins, "_FIRST", 0.0)
    with signing_in(FakeReader(unreadable={"hc1-kms"}).reader, [credential("hc1", "kms")]) as [never]:
        pass
    assert list(never.failed) == ["the secret hc1-kms cannot be mounted: 403"]


def test_a_new_version_of_the_secret_is_used_once_the_vault_has_it() -> None:
    fake = FakeReader()

    with signing_in(fake.reader, [credential("hc1", "kms")]) as results:
        fake.unreadable.add("hc1-kms")
        seen = len(fake.seen)
        fake.wait(lambda: len(fake.seen) > seen + 5)
        fake.unreadable.clear()
        fake.values["hc1-kms"] = _NO_CREDENTIAL
        fake.wait(lambda: _NO_CREDENTIAL in fake.loaded)
        fake.values["hc1-kms"] = "the next version"
        fake.wait(lambda: "the next version" in fake.seen)

    assert results[0].failed.total() == 0
    assert _NO_CREDENTIAL not in fake.seen


def test_what_comes_late_at_the_beginning_is_no_failure() -> None:
    fake = FakeReader(refused={"hc1-kms"})

    def later() -> None:
        fake.wait(lambda: len(fake.seen) >= 2)
        fake.refused.clear()

    helper = threading.Thread(target=later)
    helper.start()
    with signing_in(fake.reader, [credential("hc1", "kms")]) as results:
        helper.join()

    assert results[0].failed.total() == 0


def test_a_new_pod_needs_its_secret_and_its_sign_in() -> None:
    fake = FakeReader(unreadable={"hc1-kms"}, refused={"hc1-disk"})
    found = sign_in_once(fake.reader, [credential("hc1", identity) for identity in ("kms", "disk", "file")])

    assert [(result.worked, list(result.failed)) for result in found] == [
        (0, ["the secret hc1-kms cannot be mounted: 403"]),
        (0, ["AADSTS700016: the tenant has no such application"]),
        (1, []),
    ]


def test_the_outputs_name_vault_reader_and_secret() -> None:
    identity = {"credentialsSecretName": "kms-hc1-json", "objectEncoding": "base64"}
    outputs: Any = {
        "keyVaultName": "kv-dev",
        "keyVaultUserClientId": "reader",
        "hostedClusters": {"hc1": {"controlPlane": {"kms": identity}}},
    }

    assert list(credential_mounts(outputs)) == [
        CredentialMount(ResourceOwner("hc1", "kms"), "kv-dev", "reader", "kms-hc1-json", "base64")
    ]
    assert list(credential_mounts({})) == []
    assert SignIns(ResourceOwner()).failed.total() == 0
