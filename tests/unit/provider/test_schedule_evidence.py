"""What a schedule makes of a vault, of dates and of an Entra ID that disagree; and what may be registered."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate, issue, key_id
from identity.credentials.renewal_request import RenewalRequest, write
from localcloud.testing.arm import VAULT, ArmWorld
from localcloud.testing.azure import Application
from plugin import UNKNOWN, PluginError, Props
from provider import cloud, keys
from provider.__main__ import IdstackProvider
from tests.unit.provider.conftest import ADDRESS, SECRET, SetClock
from tests.unit.provider.schedule_world import B2, FIRST_ISSUE, PROGRAM, START, URN, checked, schedule, vault

__all__ = ["vault"]

BOTH: Props = {**FIRST_ISSUE, "current": "b", "b": B2}
LATER = START + timedelta(days=60)
A1, B2_BEGIN = (rfc3339.parse(str(slot["notBefore"])) for slot in (FIRST_ISSUE["a"], B2))


def shown(world: ArmWorld, name: str, not_before: datetime, thumbprint: str = "AB" * 20, **tags: str) -> None:
    """Put a certificate into the vault with its dates, as far as ARM shows it."""
    body = {
        "tags": {"generation": name, "delivered_at": rfc3339.render(not_before), "thumbprint": thumbprint, **tags},
        "properties": {"value": name, "attributes": {"nbf": int(not_before.timestamp())}},
    }
    assert world.call("PUT", f"{VAULT}/secrets/{SECRET}", body).is_success


def refusal(old: Props | None) -> str:
    """The reason of Check's only failure."""
    [failure] = schedule.check(URN, old, PROGRAM).failures
    return failure.reason


@pytest.fixture
def application(vault: ArmWorld) -> Application:
    """The identity's application, which the deployer owns."""
    return vault.cloud.directory.create_application("hc1-ingress", owners=(vault.deployer.object_id,))


@pytest.fixture
def certificate() -> IssuedCertificate:
    """Slot `a`'s."""
    return issue("hc1-ingress", not_before=A1, lifetime=timedelta(days=730))


def register(application: Application, *certificates: IssuedCertificate) -> None:
    """Make these the registered certificates."""
    credentials = [
        {
            "type": "AsymmetricX509Cert",
            "usage": "Verify",
            "keyId": key_id(cert.thumbprint),
            "key": base64.b64encode(_der(cert)).decode(),
            "startDateTime": rfc3339.render(cert.not_before),
            "endDateTime": rfc3339.render(cert.not_after),
        }
        for cert in certificates
    ]
    client = cloud.client("local", ADDRESS["tenantId"])
    client.change_directory_object(f"/applications/{application.object_id}", {"keyCredentials": credentials})


def _der(certificate: IssuedCertificate) -> bytes:
    return x509.load_pem_x509_certificate(certificate.certificate_pem.encode()).public_bytes(Encoding.DER)


def refreshed(application: Application, state: Props) -> Props:
    """The inputs after a refresh; the outputs have the same slots."""
    known = state | {"clientId": application.app_id}
    found = schedule.read(URN, "id", known, known | {"b": {}} if "b" not in known else known)
    assert found is not None
    assert all(found.inputs[name] == found.state[name] for name in ("a", "b") if name in found.inputs)
    return found.inputs


def test_a_refresh_notes_what_was_taken_out_of_entra(
    vault: ArmWorld, application: Application, certificate: IssuedCertificate, set_clock: SetClock
) -> None:
    second = issue("hc1-ingress", not_before=B2_BEGIN, lifetime=timedelta(days=730))
    shown(vault, "b2", B2_BEGIN, second.thumbprint)
    register(application, certificate, second)
    assert refreshed(application, BOTH) == BOTH | {"clientId": application.app_id}

    register(application, second)
    noted = refreshed(application, BOTH)
    assert (noted["a"], noted["b"]) == ({**FIRST_ISSUE["a"], "withdrawn": True}, B2)

    set_clock(LATER)
    emptied = checked(noted, clientId=application.app_id, mode="hold")
    assert "a" not in emptied, "the program registers nothing for it"
    assert emptied["renewal"] == "slot a, as a1 is not registered at Entra ID any more"

    register(application, certificate, second)
    assert refreshed(application, noted)["a"] == FIRST_ISSUE["a"], "it was taken out and put back"


def test_what_the_vault_shows_and_nobody_registered_is_a_persons_decision(
    vault: ArmWorld, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(vault, "a1", A1)
    noted = refreshed(application, FIRST_ISSUE)
    assert noted["a"]["withdrawn"] is True
    reason = refusal(noted)
    assert reason.startswith(
        f"somebody took a1, which {SECRET} in the vault has, out of Entra ID. If its key has leaked,"
    )
    for way in ("--revoke --now", "--register"):
        assert f"`.venv/bin/idstack rotate {way} --stack dev --identity hc1/ingress`" in reason
    for name, value in write({"hc1-ingress-schedule": RenewalRequest.REGISTER}).items():
        monkeypatch.setenv(name, value)
    assert checked(noted)["a"] == FIRST_ISSUE["a"]


@pytest.fixture
def in_use(vault: ArmWorld, application: Application, certificate: IssuedCertificate) -> Props:
    """The program's inputs for the schedule of an identity whose `a1` is registered, and in the vault."""
    register(application, certificate)
    shown(vault, "a1", A1, certificate.thumbprint)
    return {"clientId": application.app_id, "delivered": "a1"}


def test_a_schedule_that_the_state_lost_goes_on_with_what_pods_use(in_use: Props) -> None:
    found = checked(**in_use)
    assert (found["current"], found["a"]) == ("a", {**FIRST_ISSUE["a"], "validDays": 730})
    assert "b" not in found
    assert found["renewal"] == "a1 of the vault goes on"


def test_a_lost_schedule_waits_while_pods_may_use_what_only_it_knew(
    vault: ArmWorld, application: Application, set_clock: SetClock
) -> None:
    second = issue("hc1-ingress", not_before=B2_BEGIN, lifetime=timedelta(days=730))
    register(application, second)
    shown(vault, "b2", B2_BEGIN, second.thumbprint)
    created = datetime.now(UTC)
    set_clock(created + timedelta(hours=8))
    program: Props = {"clientId": application.app_id, "delivered": "b2"}
    [failure] = schedule.check(URN, None, {**PROGRAM, **program}).failures
    assert failure.reason.startswith(
        "the state has no schedule any more, and pods may still sign in with a certificate of"
    )
    set_clock(created + timedelta(hours=9))
    assert {name: found for name, found in checked(**program).items() if name in ("current", "a", "b")} == {
        "current": "b",
        "b": {**B2, "validDays": 730},
    }


@pytest.mark.parametrize("recorded", [None, "a1"])
def test_a_recovered_secret_with_the_name_and_the_start_of_another_certificate_is_no_delivery(
    vault: ArmWorld, application: Application, certificate: IssuedCertificate, recorded: str | None
) -> None:
    register(application, certificate)
    shown(vault, "a1", A1, "AB" * 20)
    new = {"clientId": application.app_id, "delivered": recorded}
    found = checked(FIRST_ISSUE | {"clientId": application.app_id}, **new)

    assert ("b" in found) == (recorded is None), "an edited tag, if a complete run has delivered it"


@pytest.mark.parametrize("lost", ["delivered", "clientId"])
def test_without_the_whole_proof_a_new_schedule_begins_in_the_other_slot(
    vault: ArmWorld, in_use: Props, lost: str
) -> None:
    # A state that was lost as a whole has no record, and a new application no registration.
    other = vault.cloud.directory.create_application("another").app_id
    found = checked(**{**in_use, lost: other if lost == "clientId" else None})
    assert (found["current"], found["b"]["generation"]) == ("b", 2)
    assert "a" not in found


def test_an_application_that_is_not_there_yet_has_no_certificate_in_use(in_use: Props) -> None:
    assert checked(**{**in_use, "clientId": UNKNOWN})["current"] == "b"


def test_a_refresh_of_an_application_that_is_gone_changes_nothing(vault: ArmWorld) -> None:
    read = schedule.read(URN, "id", FIRST_ISSUE, FIRST_ISSUE)
    assert read is not None
    assert (read.inputs, read.state) == (FIRST_ISSUE, FIRST_ISSUE)


def test_an_older_certificate_in_the_vault_is_refused_in_words(vault: ArmWorld, set_clock: SetClock) -> None:
    shown(vault, "b2", B2_BEGIN)
    set_clock(LATER)
    seen = checked(BOTH, mode="hold")
    shown(vault, "a1", A1)

    reason = refusal(seen)

    assert "ingress-hc1-json in the vault has a1 again, which is older than b2, delivered at 2026-03-18T" in reason
    command = "`.venv/bin/idstack rotate --force --stack dev --identity hc1/ingress`"
    assert f"run {command}: it issues another certificate in slot a, and pods that use" in reason


def test_a_date_in_the_future_is_refused_with_the_command_that_corrects_it(
    vault: ArmWorld, set_clock: SetClock
) -> None:
    set_clock(LATER)
    shown(vault, "b2", datetime(2036, 1, 1, tzinfo=UTC))
    command = (
        "`.venv/bin/idstack local exec -- az keyvault secret set-attributes --vault-name kv-idstack-local "
        "--name ingress-hc1-json --not-before 2026-03-18T09:00:00Z`"
    )
    for old in (BOTH, {**BOTH, "delivered": {"name": "b2", "at": "2026-03-18T09:31:00Z"}}):
        assert "begins (nbf) at 2036-01-01T00:00:00Z, later than now" in refusal(old)
        assert command in refusal(old)
    assert "--not-before <when its certificate begins>`" in refusal(None)


def test_nothing_is_withdrawn_for_a_certificate_that_could_not_begin(
    vault: ArmWorld, set_clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(LATER)
    shown(vault, "b2", datetime(2036, 1, 1, tzinfo=UTC))
    for request in (RenewalRequest.REPLACE, RenewalRequest.WITHDRAW):
        for name, value in write({"hc1-ingress-schedule": request}).items():
            monkeypatch.setenv(name, value)
        assert "begins (nbf) at 2036-01-01T00:00:00Z, later than now" in refusal(BOTH), "before Entra ID is asked"


@pytest.mark.parametrize("at", ["2036-01-01T00:00:00Z", "2020-01-01T00:00:00Z"])
def test_the_tag_of_a_delivery_counts_no_more_than_the_versions_creation(
    vault: ArmWorld, set_clock: SetClock, at: str
) -> None:
    shown(vault, "b2", B2_BEGIN, delivered_at=at)
    created = datetime.now(UTC)
    set_clock(created + timedelta(minutes=5))
    assert checked(BOTH)["current"] == "b", "it is due, and pods may need a1 until the overlap ends"
    set_clock(created + timedelta(days=1))
    renewed = checked(BOTH)
    assert (renewed["current"], renewed["delivered"]["name"]) == ("a", "b2"), "it is due, and the overlap is over"
    assert rfc3339.parse(renewed["delivered"]["at"]) <= created


def test_a_state_whose_first_certificate_begins_in_the_future_is_not_stuck(vault: ArmWorld) -> None:
    far = {"generation": 1, "notBefore": "2027-01-31T09:00:00Z", "validDays": 90}
    assert checked({**FIRST_ISSUE, "a": far})["a"] == {**FIRST_ISSUE["a"], "generation": 2}


def _question(certificate: IssuedCertificate) -> Props:
    begin = rfc3339.render(certificate.not_before)
    return {**ADDRESS, "thumbprint": certificate.thumbprint, "notBefore": begin}


def test_what_this_process_issued_may_be_registered(certificate: IssuedCertificate) -> None:
    keys.remember(certificate)
    try:
        assert IdstackProvider().invoke("idstack:index:requireRegistrable", _question(certificate)) == {}
    finally:
        keys.forget(certificate.thumbprint)


def test_so_may_what_the_vault_shows_and_nothing_else(vault: ArmWorld, certificate: IssuedCertificate) -> None:
    ask = IdstackProvider().invoke
    shown(vault, "a1", certificate.not_before, certificate.thumbprint)
    assert ask("idstack:index:requireRegistrable", _question(certificate)) == {}

    for name, begin, thumbprint in (
        ("b2", B2_BEGIN, "CD" * 20),
        ("a1", B2_BEGIN, certificate.thumbprint),
        ("a1", certificate.not_before, "CD" * 20),
    ):
        shown(vault, name, begin, thumbprint)
        with pytest.raises(
            PluginError, match=r"is not registered again: somebody took it out .*`.venv/bin/idstack recover`"
        ):
            ask("idstack:index:requireRegistrable", _question(certificate))


def test_without_a_look_at_the_vault_nothing_is_registered(
    vault: ArmWorld, certificate: IssuedCertificate, sign_in: Any
) -> None:
    sign_in(vault.principal())
    with pytest.raises(PluginError, match=r"whether .*ingress-hc1-json has the certificate cannot be seen: .*403"):
        IdstackProvider().invoke("idstack:index:requireRegistrable", _question(certificate))
