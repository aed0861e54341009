"""What a person asks of a schedule: renew now, force, withdraw, replace; and what it takes out of Entra ID then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from identity.azure.errors import AzureRefusedError
from identity.credentials import rfc3339
from identity.credentials.certificate import key_id
from identity.credentials.renewal_request import RenewalRequest, write
from localcloud.testing.arm import VAULT, ArmWorld
from plugin import PluginError, PropertyChange, Props
from tests.unit.provider.conftest import SECRET, SetClock
from tests.unit.provider.schedule_world import (
    B2,
    FIRST_ISSUE,
    PROGRAM,
    START,
    URN,
    changes,
    checked,
    deliver,
    schedule,
    vault,
)

__all__ = ["vault"]


def asked(monkeypatch: pytest.MonkeyPatch, request: RenewalRequest, of: str = "hc1-ingress-schedule") -> None:
    for name, value in write({of: request}).items():
        monkeypatch.setenv(name, value)


def test_a_renewal_that_is_asked_for_comes_before_hold(vault: ArmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(vault)
    asked(monkeypatch, RenewalRequest.FORCE, "hc2-ingress-schedule")
    assert checked(FIRST_ISSUE)["current"] == "a", "it is another schedule's"
    asked(monkeypatch, RenewalRequest.RENEW)
    renewed = checked(FIRST_ISSUE, mode="hold")
    assert (renewed["current"], renewed["renewal"]) == ("b", "slot b, asked for at 2026-01-31T09:30:15Z")


def test_too_soon_names_the_moment_and_the_ways_out(
    vault: ArmWorld, monkeypatch: pytest.MonkeyPatch, set_clock: SetClock
) -> None:
    old = {**FIRST_ISSUE, "current": "b", "b": B2}
    set_clock(START + timedelta(days=46))
    deliver(vault, "b2", rfc3339.render(START + timedelta(days=46)))
    asked(monkeypatch, RenewalRequest.RENEW)
    [failure] = schedule.check(URN, old, PROGRAM).failures
    assert failure.reason.startswith("a certificate is needed (asked for at 2026-03-18T09:30:15Z), but one now would")
    assert "until 2026-03-18T18:00:15Z: " in failure.reason
    assert "if ingress-hc1-json was deleted from the vault, recover it" in failure.reason
    assert "`.venv/bin/idstack rotate --force`" in failure.reason
    asked(monkeypatch, RenewalRequest.FORCE)
    assert checked(old)["current"] == "a"


def test_a_withdrawn_slot_leaves_the_inputs_once_pods_have_the_other(
    vault: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {**FIRST_ISSUE, "current": "b", "b": B2}
    deliver(vault)
    asked(monkeypatch, RenewalRequest.WITHDRAW)
    [failure] = schedule.check(URN, old, PROGRAM).failures
    assert failure.reason.startswith(
        "slot a is not withdrawn, because the certificate of slot b has not reached the vault"
    )
    deliver(vault, "b2")
    new = checked(old)
    assert "a" not in new
    assert schedule.diff(URN, "id", old, old, new).changes["a"] == PropertyChange("delete")
    assert checked(new) == new


class RecordedGraph:
    """Requests to change objects of the directory; `refusal` is what each of them raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refusal: Exception | None = None) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.registered: list[dict[str, Any]] = []
        self._refusal = refusal
        monkeypatch.setattr("provider.cloud.client", lambda *_: self)
        monkeypatch.setattr("provider.renewal_schedule.pause", lambda _: None)

    def directory_object(self, path: str) -> dict[str, Any]:
        return {"keyCredentials": self.registered}

    def change_directory_object(self, path: str, body: Any) -> None:
        self.requests.append((path, body))
        if self._refusal:
            raise self._refusal
        self.registered = body["keyCredentials"]


def registered(byte: str) -> dict[str, Any]:
    """A certificate as Graph lists it; its thumbprint is the byte, repeated."""
    dates = {"startDateTime": B2["notBefore"], "endDateTime": "2026-06-16T09:00:00Z"}
    return {"customKeyIdentifier": byte * 20, "keyId": key_id(byte * 20), **dates}


def _updated(old: Props, new: Props, *, preview: bool = False) -> Props:
    urn = "urn:pulumi:dev::idstack::idstack:index:RenewalSchedule::hc1-ingress-schedule"
    return schedule.update(urn, "", old, old, new, preview=preview)


def test_a_replacement_takes_every_certificate_out_before_the_state_has_it(
    vault: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = checked()
    deliver(vault)
    asked(monkeypatch, RenewalRequest.REPLACE)
    new = checked(old)
    graph = RecordedGraph(monkeypatch)

    assert ("a" in new, new["current"]) == (False, "b")
    _updated(old, new, preview=True)
    assert graph.requests == []
    _updated(old, new)
    assert graph.requests == [(f"/applications(appId='{new['clientId']}')", {"keyCredentials": []})]


def test_a_withdrawal_takes_out_what_no_state_knows_and_nobody_elses(
    vault: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {**FIRST_ISSUE, "current": "b", "b": B2}
    deliver(vault, "b2")
    asked(monkeypatch, RenewalRequest.WITHDRAW)
    new: Any = checked(old)
    seen = schedule._read(new)
    graph = RecordedGraph(monkeypatch)
    monkeypatch.setattr(schedule, "_read", lambda _: seen)
    current, before, unknown = map(registered, ("AB", "CD", "EF"))
    somebody_elses = {**unknown, "keyId": "11111111-1111-4111-8111-111111111111"}
    graph.registered = [before, current, unknown, somebody_elses]

    _updated(old, new, preview=True)
    assert graph.requests == []
    _updated(old, new)

    kept = [current, somebody_elses]
    assert graph.requests == [(f"/applications(appId='{new['clientId']}')", {"keyCredentials": kept})]


@pytest.mark.parametrize(
    ("changes", "tags", "reason"),
    [
        ({"startDateTime": "2026-01-31T09:00:00Z"}, {}, r"begins at 2026-01-31T09:00:00Z at .* 2026-03-18T09:00:00Z"),
        ({}, {"thumbprint": "CD" * 20}, rf"did not have {'CD' * 20}, which"),
        ({}, {"thumbprint": None}, "has no tag `thumbprint`"),
    ],
)
def test_a_tag_that_contradicts_what_is_registered_withdraws_nothing(
    vault: ArmWorld, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], tags: dict[str, str | None], reason: str
) -> None:
    old = {**FIRST_ISSUE, "current": "b", "b": B2}
    deliver(vault, "b2")
    asked(monkeypatch, RenewalRequest.WITHDRAW)
    new: Any = checked(old)
    seen = schedule._read(new)
    assert seen.metadata is not None
    kept = {name: value for name, value in {**seen.metadata.tags, **tags}.items() if value is not None}
    monkeypatch.setattr(schedule, "_read", lambda _: replace(seen, metadata=replace(seen.metadata, tags=kept)))
    graph = RecordedGraph(monkeypatch)
    graph.registered = [{**registered("AB"), **changes}, registered("EF")]

    with pytest.raises(
        PluginError, match=rf"may still be registered: .*{reason}.* Nothing was removed\. Run the command"
    ):
        _updated(old, new)

    assert graph.requests == []


def test_after_a_replacement_what_the_vault_does_not_name_is_nobodys(
    vault: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = checked()
    # Nothing says which certificate it has.
    vault.call("PUT", f"{VAULT}/secrets/{SECRET}", {"tags": {}, "properties": {"value": "a1"}})
    with monkeypatch.context() as patch:
        asked(patch, RenewalRequest.REPLACE)
        replaced = checked(old, delivered="a1")

    # Its gate failed, and its key with it: no slot may stay that nothing could prove.
    for _ in range(2):
        replaced = checked(replaced, delivered="a1")
        assert (replaced["current"], "a" in replaced) == ("b", False)

    name = f"b{replaced['b']['generation']}"
    deliver(vault, name)
    assert checked(replaced)["delivered"]["name"] == name
    assert changes(replaced, checked(replaced)) == set()


def test_a_replacement_that_entra_refuses_changes_nothing(vault: ArmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    old = checked()
    asked(monkeypatch, RenewalRequest.REPLACE)
    new = checked(old)
    RecordedGraph(monkeypatch, AzureRefusedError("Graph is away"))
    with pytest.raises(PluginError, match=r"leaked certificate may still be registered: Graph is away\. Run"):
        _updated(old, new)
    asked(monkeypatch, RenewalRequest.FORCE)
    _updated(old, old)


def test_requests_of_another_form_are_refused_without_their_text(
    vault: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDSTACK_RENEWALS", '["marker"]')
    with pytest.raises(PluginError, match="IDSTACK_RENEWALS: found ") as refused:
        checked(FIRST_ISSUE)
    assert "marker" not in str(refused.value)
