"""The prefetch of secrets at the program's start: it saves the schedules a wait, and decides nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from identity.azure.errors import AzureRefusedError
from localcloud.testing.arm import VAULT, ArmWorld
from plugin import PluginError
from provider.__main__ import RESOURCES, IdstackProvider
from provider.vault_secrets import SecretPrefetch, SecretReading, VaultSecret
from tests.unit.provider.conftest import ADDRESS, SECRET
from tests.unit.provider.schedule_world import PROGRAM, URN

COMMON = {name: ADDRESS[name] for name in ("cloud", "tenantId", "vaultId")}


@pytest.fixture
def prefetch() -> SecretPrefetch:
    """That of a plugin that has just started."""
    return SecretPrefetch()


def start(prefetch: SecretPrefetch, *names: str) -> None:
    """Ask for the secrets as the program does."""
    args: Any = {**COMMON, "secretNames": list(names)}
    prefetch.start(args)


def put(world: ArmWorld, value: str) -> str:
    """Write a version of the secret; returns its name."""
    answer = world.call("PUT", f"{VAULT}/secrets/{SECRET}", {"properties": {"value": value}})
    return str(answer.json()["properties"]["secretUriWithVersion"]).rpartition("/")[2]


def seen(prefetch: SecretPrefetch) -> str | None:
    """The version that a schedule sees."""
    address: Any = ADDRESS
    metadata = prefetch.get(address).metadata
    return None if metadata is None else metadata.version


def test_a_prefetched_secret_serves_one_schedule_once(
    prefetch: SecretPrefetch, in_azure: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(in_azure, "first")
    ended = count_reads(monkeypatch)
    start(prefetch, SECRET)
    assert ended.acquire(timeout=30)
    second = put(in_azure, "second")

    assert [seen(prefetch), seen(prefetch)] == [first, second]


def test_a_secret_that_was_not_prefetched_is_read(prefetch: SecretPrefetch, in_azure: ArmWorld) -> None:
    start(prefetch, "another")

    assert seen(prefetch) is None
    assert put(in_azure, "first") == seen(prefetch)


def test_secrets_are_prefetched_in_parallel(
    prefetch: SecretPrefetch, in_azure: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"secret-{number}" for number in range(9)]
    together = threading.Barrier(len(names))

    def wait(secret: VaultSecret) -> SecretReading:
        together.wait(timeout=30)
        return read(secret)

    read = VaultSecret.read
    monkeypatch.setattr(VaultSecret, "read", wait)
    start(prefetch, *names)

    addresses: list[Any] = [{**ADDRESS, "secretName": name} for name in names]
    assert [prefetch.get(address).metadata for address in addresses] == [None] * len(names)


@pytest.mark.parametrize("error", [AzureRefusedError("503"), PluginError("no sign-in")])
def test_a_failed_prefetch_is_read_again(
    prefetch: SecretPrefetch, in_azure: ArmWorld, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    version = put(in_azure, "first")
    answers: list[Any] = [error]
    read = VaultSecret.read

    def fail_first(secret: VaultSecret) -> SecretReading:
        if answers:
            raise answers.pop()
        return read(secret)

    monkeypatch.setattr(VaultSecret, "read", fail_first)
    start(prefetch, SECRET)

    assert seen(prefetch) == version


def test_the_plugin_prefetches_what_its_schedules_take(in_azure: ArmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = count_reads(monkeypatch)
    arguments = {**COMMON, "secretNames": [SECRET]}

    assert IdstackProvider().invoke("idstack:index:prefetchSecrets", arguments) == {}

    assert ended.acquire(timeout=30)
    checked = RESOURCES["idstack:index:RenewalSchedule"].check(URN, None, PROGRAM)
    assert not checked.failures
    assert not ended.acquire(blocking=False)
    with pytest.raises(PluginError, match="no function"):
        IdstackProvider().invoke("idstack:index:listSecrets", {})


def count_reads(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """A semaphore that each read releases when it has its answer."""
    ended = threading.Semaphore(0)
    read = VaultSecret.read

    def counted(secret: VaultSecret) -> SecretReading:
        answer = read(secret)
        ended.release()
        return answer

    monkeypatch.setattr(VaultSecret, "read", counted)
    return ended
