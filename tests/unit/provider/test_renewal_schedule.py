"""`RenewalScheduleResource`: the decision on a renewal by the vault and the clock, and what a person asks of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from identity.azure.errors import AzureRefusedError
from identity.credentials import rfc3339
from identity.credentials.certificate import key_id
from identity.credentials.renewal_request import RenewalRequest, write
from identity.credentials.rfc3339 import utc_now
from localcloud.testing.arm import VAULT, ArmWorld
from localcloud.testing.azure import ServicePrincipal
from plugin import UNKNOWN, PluginError, PropertyChange, Props, Secret
from tests.unit.provider.conftest import SECRET, SetClock, SignIn, refused_inputs
from tests.unit.provider.schedule_world import (
    B2,
    DELIVERED,
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


@pytest.mark.parametrize("mode", ["auto", "hold"])
def test_at_first_one_slot_is_issued_on_hold_as_well(
    sign_in: SignIn, deployer: ServicePrincipal, world: ArmWorld, set_clock: SetClock, mode: str
) -> None:
    sign_in(deployer)
    set_clock(START)
    for made in (lambda: None, world.create_vault):
        made()
        assert checked(mode=mode) == FIRST_ISSUE, "with or without a vault"


def test_what_was_delivered_is_noted_and_is_no_change(vault: ArmWorld) -> None:
    deliver(vault)
    second = checked(FIRST_ISSUE)
    assert second == {**FIRST_ISSUE, "delivered": DELIVERED}
    assert changes(FIRST_ISSUE, second) == set()
    assert checked(second) == second
    assert checked({name: Secret(value) for name, value in FIRST_ISSUE.items()}) == second, "marks do not matter"


def test_from_its_own_day_before_the_45th_on_b_is_issued_and_current(
    vault: ArmWorld, sign_in: SignIn, set_clock: SetClock
) -> None:
    deliver(vault)
    set_clock(START + timedelta(days=46))
    renewed = checked(FIRST_ISSUE)
    assert renewed == {
        **FIRST_ISSUE,
        "current": "b",
        "b": B2,
        "renewal": "slot b, due since 2026-03-12T00:46:38Z",
        "delivered": DELIVERED,
    }
    assert changes(FIRST_ISSUE, renewed) == {"b", "current", "renewal"}
    sign_in(vault.principal(("Reader", VAULT)))
    assert checked(FIRST_ISSUE, delivered="a1") == renewed, "a reader decides as the deployer does"
    deliver(vault, "b2", "2026-03-18T09:31:00Z")
    assert changes(renewed, checked(renewed, delivered="b2")) == set()


def test_a_caller_that_may_not_see_the_secret_gets_the_reason_and_the_fix(vault: ArmWorld, sign_in: SignIn) -> None:
    sign_in(vault.principal())
    with pytest.raises(PluginError, match=r"ingress-hc1-json cannot be read: .*403.* \(role Reader\), then try again"):
        checked(FIRST_ISSUE)


def test_a_subscription_without_the_vaults_provider_gets_the_command_that_registers_it(vault: ArmWorld) -> None:
    vault.hold(unregistered_providers=("Microsoft.KeyVault",))
    with pytest.raises(
        PluginError, match=r"(?s)cannot be read: .*; `az provider register --wait --namespace Microsoft.KeyVault`"
    ):
        checked(FIRST_ISSUE)


def test_what_never_reached_the_vault_is_issued_again_in_its_slot(vault: ArmWorld, set_clock: SetClock) -> None:
    deliver(vault)
    set_clock(START + timedelta(days=46))
    failed = checked(FIRST_ISSUE)
    set_clock(START + timedelta(days=47))
    again = checked(failed)
    assert (again["a"], again["b"]["generation"]) == (FIRST_ISSUE["a"], 3)
    assert again["renewal"] == "slot b, again, as b2 never reached the vault"


def test_a_deleted_secret_is_known_from_the_run_before(vault: ArmWorld, set_clock: SetClock) -> None:
    deliver(vault)
    seen = checked(FIRST_ISSUE)
    vault.vault("DELETE", f"/secrets/{SECRET}")
    set_clock(START + timedelta(days=1))
    assert (checked(seen)["current"], checked(seen)["a"]) == ("b", FIRST_ISSUE["a"])


def test_a_deleted_secret_is_known_from_the_last_outputs(vault: ArmWorld, set_clock: SetClock) -> None:
    set_clock(START + timedelta(days=1))
    assert checked(FIRST_ISSUE, delivered="a1")["current"] == "b"
    assert checked(FIRST_ISSUE)["a"]["generation"] == 2


@pytest.mark.parametrize("delivered", ["", "a9", "nonsense", None, UNKNOWN])
def test_outputs_that_name_another_certificate_count_for_nothing(vault: ArmWorld, delivered: Any) -> None:
    assert checked(FIRST_ISSUE, delivered=delivered)["a"]["generation"] == 2


@pytest.mark.parametrize("name", ["objectEncoding", "authorityHost"])
def test_another_document_takes_another_certificate(vault: ArmWorld, name: str) -> None:
    deliver(vault)
    changed = checked(FIRST_ISSUE, **{name: "another"}, mode="hold")
    assert (changed["current"], changed["a"], changed[name]) == ("b", FIRST_ISSUE["a"], "another")


def test_a_secret_that_moves_keeps_what_pods_have_however_often_it_fails(vault: ArmWorld) -> None:
    deliver(vault)
    moving = checked(FIRST_ISSUE, secretName="renamed")
    for generation in (3, 4):
        moving = checked(moving, secretName="renamed")
        assert (moving["current"], moving["a"], moving["b"]["generation"]) == ("b", FIRST_ISSUE["a"], generation)


def test_another_application_begins_anew_after_what_the_vault_has(vault: ArmWorld) -> None:
    deliver(vault, "b4")
    old = {**FIRST_ISSUE, "clientId": "another"}
    assert schedule.diff(URN, "id", old, old, FIRST_ISSUE).changes == {
        "clientId": PropertyChange("update", replace=True)
    }
    assert checked(None)["a"]["generation"] == 5


@pytest.mark.parametrize("client", [UNKNOWN, "known"])
def test_an_application_that_is_to_be_created_is_nobodys_mistake(vault: ArmWorld, client: Any) -> None:
    assert checked(clientId=client) == {**FIRST_ISSUE, "clientId": client}


@pytest.mark.parametrize("ahead", [timedelta(minutes=6), timedelta(days=-400)])
def test_a_machine_whose_clock_is_wrong_issues_nothing(
    vault: ArmWorld, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    monkeypatch.setattr("provider.vault_secrets.utc_now", lambda: utc_now() + ahead)
    for old in (None, FIRST_ISSUE):
        with pytest.raises(PluginError, match=r"this machine's clock is wrong: it shows .*, Azure .*; set it right"):
            checked(old)
    deliver(vault)
    assert changes(FIRST_ISSUE, checked(FIRST_ISSUE)) == set(), "what issues nothing may run"


def test_the_tests_clock_is_a_timestamp_in_the_local_cloud(vault: ArmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PluginError, match=r"IDSTACK_CLOCK is set, .*; unset it"):
        checked(cloud="AzurePublicCloud")
    monkeypatch.setenv("IDSTACK_CLOCK", "tomorrow")
    with pytest.raises(PluginError, match="IDSTACK_CLOCK: found no timestamp; accepted: RFC 3339 such as 2026-01-31T"):
        checked()


@refused_inputs("RenewalSchedule")
def test_wrong_inputs_are_refused_by_name(name: str, reason: str, value: Any) -> None:
    refused = schedule.check(URN, None, {**PROGRAM, name: value})
    assert [(refusal.property, refusal.reason) for refusal in refused.failures] == [(name, reason)]


@pytest.mark.parametrize("days", [3_000_000, 10**10])
def test_a_lifetime_past_the_calendar_is_refused(set_clock: SetClock, days: int) -> None:
    set_clock(START)
    refused = schedule.check(URN, FIRST_ISSUE, {**PROGRAM, "lifetimeDays": days})
    accepted = "days after 2026-01-31T09:30:15Z that end before the year 10000"
    assert [(failure.property, failure.reason) for failure in refused.failures] == [
        ("lifetimeDays", f"found {days}; accepted: {accepted}")
    ]


def test_outputs_are_the_checked_inputs_with_empty_slots_in_previews_too() -> None:
    noted = {**FIRST_ISSUE, "delivered": DELIVERED}
    created = schedule.create(URN, noted, preview=False)
    assert (created.id, created.state) == ("hc1-ingress-schedule", {**noted, "b": {}})
    assert schedule.create(URN, noted, preview=True).state == created.state
    assert schedule.update(URN, "id", {}, {}, noted, preview=True) == created.state


def test_the_vault_in_another_letter_case_holds_what_it_held(vault: ArmWorld, set_clock: SetClock) -> None:
    first = checked()
    deliver(vault)
    old = checked(first)
    found = checked(old, vaultId=PROGRAM["vaultId"].swapcase(), secretName=PROGRAM["secretName"].upper())
    assert (found["current"], found["renewal"]) == ("a", old["renewal"])
    assert changes(old, found) == set()


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
    assert "`.venv/bin/idstack rotate --force --stack dev --identity hc1/ingress`" in failure.reason
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
