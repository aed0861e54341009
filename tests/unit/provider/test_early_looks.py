"""Looks at secrets that the program asks for at its start: they save the schedules a wait, and decide nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from identity.access.errors import AzureRefusedError
from localcloud.tests.arm_world import VAULT, ArmWorld
from plugin import PluginError
from provider.__main__ import RESOURCES, IdstackProvider
from provider.early_looks import EarlyLooks
from provider.vault_secrets import SecretSeen, VaultSecret
from tests.unit.provider.conftest import ADDRESS, SECRET
from tests.unit.provider.schedule_world import PROGRAM, URN

COMMON = {name: ADDRESS[name] for name in ("cloud", "tenantId", "vaultId")}


@pytest.fixture
def looks() -> EarlyLooks:
    """Those of a plugin that has just been started."""
    return EarlyLooks()


def begin(looks: EarlyLooks, *names: str) -> None:
    """Ask for looks as the program does."""
    args: Any = {**COMMON, "secretNames": list(names)}
    looks.begin(args)


def put(world: ArmWorld, value: str) -> str:
    """Write a version of the secret; returns its name."""
    answer = world.call("PUT", f"{VAULT}/secrets/{SECRET}", {"properties": {"value": value}})
    return str(answer.json()["properties"]["secretUriWithVersion"]).rpartition("/")[2]


def seen(looks: EarlyLooks) -> str | None:
    """The version that a schedule sees."""
    address: Any = ADDRESS
    found = looks.look(address).found
    return None if found is None else found.version


def test_a_look_that_was_begun_serves_one_schedule_once(
    looks: EarlyLooks, in_azure: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(in_azure, "first")
    ended = count_looks(monkeypatch)
    begin(looks, SECRET)
    assert ended.acquire(timeout=30)
    second = put(in_azure, "second")

    assert [seen(looks), seen(looks)] == [first, second]


def test_a_look_that_was_not_begun_is_made(looks: EarlyLooks, in_azure: ArmWorld) -> None:
    begin(looks, "another")

    assert seen(looks) is None
    assert put(in_azure, "first") == seen(looks)


def test_looks_are_side_by_side(looks: EarlyLooks, in_azure: ArmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"secret-{number}" for number in range(9)]
    together = threading.Barrier(len(names))

    def wait(secret: VaultSecret) -> SecretSeen:
        together.wait(timeout=30)
        return look(secret)

    look = VaultSecret.look
    monkeypatch.setattr(VaultSecret, "look", wait)
    begin(looks, *names)

    addresses: list[Any] = [{**ADDRESS, "secretName": name} for name in names]
    assert [looks.look(address).found for address in addresses] == [None] * len(names)


@pytest.mark.parametrize("error", [AzureRefusedError("503"), PluginError("no sign-in")])
def test_a_failed_look_is_made_again(
    looks: EarlyLooks, in_azure: ArmWorld, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    version = put(in_azure, "first")
    answers: list[Any] = [error]
    look = VaultSecret.look

    def fail_first(secret: VaultSecret) -> SecretSeen:
        if answers:
            raise answers.pop()
        return look(secret)

    monkeypatch.setattr(VaultSecret, "look", fail_first)
    begin(looks, SECRET)

    assert seen(looks) == version


def test_the_plugin_begins_looks_that_its_schedules_take(in_azure: ArmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = count_looks(monkeypatch)
    arguments = {**COMMON, "secretNames": [SECRET]}

    assert IdstackProvider().invoke("idstack:index:lookAtSecrets", arguments) == {}

    assert ended.acquire(timeout=30)
    checked = RESOURCES["idstack:index:RenewalSchedule"].check(URN, None, PROGRAM)
    assert not checked.failures
    assert not ended.acquire(blocking=False)


def test_another_function_is_refused() -> None:
    with pytest.raises(PluginError, match="no function"):
        IdstackProvider().invoke("idstack:index:listSecrets", {})


def count_looks(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """A semaphore that each look releases when it has its answer."""
    ended = threading.Semaphore(0)
    look = VaultSecret.look

    def counted(secret: VaultSecret) -> SecretSeen:
        answer = look(secret)
        ended.release()
        return answer

    monkeypatch.setattr(VaultSecret, "look", counted)
    return ended
