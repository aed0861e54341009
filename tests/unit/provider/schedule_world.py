"""A renewal schedule beside a vault, and what a program writes for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from identity.plugin_schema import SCHEMA
from localcloud.testing.arm import VAULT, ArmWorld
from plugin import Props
from provider.renewal_schedule import RenewalScheduleResource
from provider.vault_secrets import SecretPrefetch
from tests.unit.provider.conftest import ADDRESS, SECRET, SetClock

URN = "urn:pulumi:dev::idstack::idstack:index:RenewalSchedule::hc1-ingress-schedule"
START = datetime(2026, 1, 31, 9, 30, 15, tzinfo=UTC)
# What a program writes, by the defaults of the settings.
PROGRAM: Props = {
    "lifetimeDays": 90,
    "renewBeforeDays": 45,
    "mode": "auto",
    **ADDRESS,
    "authorityHost": "https://127.0.0.1:1/",
    "clientId": "6f2c1e7a-0000-4000-8000-00000000aaaa",
}
KEPT = {name: value for name, value in PROGRAM.items() if name != "mode"}
FIRST_ISSUE = {
    **KEPT,
    "current": "a",
    "a": {"generation": 1, "notBefore": "2026-01-31T09:00:00Z", "validDays": 90},
    "renewal": "first certificate",
    "schema": SCHEMA,
}
B2 = {"generation": 2, "notBefore": "2026-03-18T09:00:00Z", "validDays": 90}
DELIVERED = {"name": "a1", "at": "2026-01-31T09:31:00Z"}

schedule = RenewalScheduleResource(SecretPrefetch())


@pytest.fixture
def vault(in_azure: ArmWorld, set_clock: SetClock) -> ArmWorld:
    """The stack's vault at the start, without a secret."""
    set_clock(START)
    return in_azure


def deliver(world: ArmWorld, name: str = "a1", at: str = "2026-01-31T09:31:00Z", secret: str = SECRET) -> None:
    """Put the certificate of a slot into the vault, as far as ARM shows it."""
    tags = {"generation": name, "delivered_at": at, "thumbprint": "AB" * 20}
    world.call("PUT", f"{VAULT}/secrets/{secret}", {"tags": tags, "properties": {"value": name}})


def checked(old: Props | None = None, **changes: Any) -> Props:
    """The inputs after Check of the program's inputs with `changes`."""
    result = schedule.check(URN, old, {**PROGRAM, **changes})
    assert not result.failures, result.failures
    return result.inputs


def changes(old: Props, new: Props) -> set[str]:
    """The changed properties, none of which may replace the schedule."""
    diff = schedule.diff(URN, "id", old, old, new)
    assert not any(change.replace for change in diff.changes.values())
    return set(diff.changes)
