"""The credential source `entra-application`: slots, each issued, registered and proven before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.azure.control_plane_identity import EntraApplication
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials.certificate import issue
from tests.unit import cases
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.simulation import PROVEN_AT, RENEWED, a_uuid, issued
from tests.unit.components.world import DEPLOYER, TENANT, VAULT, context, row

APPLICATION = "azuread:index/application:Application"
PRINCIPAL = "azuread:index/servicePrincipal:ServicePrincipal"
REGISTRATION = "azuread:index/applicationCertificate:ApplicationCertificate"
SCHEDULE = "idstack:index:RenewalSchedule"
CERTIFICATE = "idstack:index:Certificate"
GATE = "idstack:index:SignInGate"
OF_A_SLOT = (CERTIFICATE, REGISTRATION, GATE)

CLIENT_ID = a_uuid("cpo-application", "client")
OBJECT_ID = f"/applications/{a_uuid('cpo-application')}"
NOT_BEFORE = {"a": "2026-11-21T08:55:00Z", "b": "2027-01-05T08:55:00Z"}
NOT_AFTER = {"a": "2027-02-19T08:55:00Z", "b": "2027-04-05T08:55:00Z"}
# Of the secret cpo-hc1-json: some days before half of the life.
RENEW_AFTER = {"a": "2027-01-02T18:24:08Z", "b": "2027-02-16T18:24:08Z"}
NUMBER = {"a": 1, "b": 2}

CERTIFICATE_OF_A_STATE = issue("cpo", not_before=datetime(2026, 11, 21, 8, 55, tzinfo=UTC), lifetime=timedelta(days=90))

CPO = row("controlPlaneOperator")

slots = pytest.mark.parametrize("slot", ["a", "b"])


def expected(part: str, slot: str) -> dict[str, Any]:
    """What a part of the application is registered with, for the slot."""
    of = issued(slot)
    words = {
        **{"TENANT": TENANT, "VAULT": VAULT, "CLIENT_ID": CLIENT_ID, "OBJECT_ID": OBJECT_ID, "PROVEN_AT": PROVEN_AT},
        **{"SLOT": slot, "NUMBER": NUMBER[slot], "NOT_BEFORE": NOT_BEFORE[slot], "NOT_AFTER": NOT_AFTER[slot]},
        **{"RENEW_AFTER": RENEW_AFTER[slot], "THUMBPRINT": of.thumbprint, "KEY_ID": a_uuid(of.thumbprint)},
        **{"PEM": of.certificate_pem, "PRINCIPAL_ID": a_uuid("cpo-principal")},
    }
    found: dict[str, Any] = cases.read(Path(__file__).with_name("entra-application.yaml"), words)[part]
    return found


def built(
    outputs: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    of: ControlPlaneIdentity = CPO,
    delivered: str | None = None,
    preview: bool = False,
    **changes: Any,
) -> RecordingMonitor:
    """The application; what it would store is exported as `document`."""

    def build() -> None:
        source = EntraApplication("cpo", context(**changes), of, delivered)
        pulumi.export("document", source.document)
        pulumi.export("shown", source.summary)

    return run(build, outputs=outputs, preview=preview)


@pytest.fixture(scope="module")
def application() -> RecordingMonitor:
    """Before the first renewal: slot `b` has no certificate."""
    return built()


@pytest.fixture(scope="module")
def renewed() -> RecordingMonitor:
    """After the first renewal: both slots have a certificate, `b` is current."""
    return built({SCHEDULE: RENEWED})


def test_the_deployer_owns_the_application_which_has_the_stacks_tag(application: RecordingMonitor) -> None:
    assert application.one(APPLICATION, "cpo-application").inputs == {
        "displayName": "cpo-hc1",
        "owners": [DEPLOYER],
        "tags": ["idstack:test:cpo", "idstack-owner:an-owner-id"],
    }
    assert application.one(PRINCIPAL, "cpo-principal").inputs == {"clientId": CLIENT_ID, "owners": [DEPLOYER]}
    for resource_type in (APPLICATION, PRINCIPAL):
        assert list(application.one(resource_type).request.ignoreChanges) == ["owners"], "of a run by somebody else"


@pytest.mark.parametrize("delivered", [None, "b7"])
def test_the_schedule_gets_the_settings_and_what_was_delivered_where(delivered: str | None) -> None:
    credentials = {"lifetimeDays": 60, "renewBeforeDays": 40, "renewal": "hold"}

    schedule = built(credentials=credentials, delivered=delivered).one(SCHEDULE, "cpo-schedule")

    assert schedule.inputs == expected("schedule", "a") | ({} if delivered is None else {"delivered": delivered})


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize(("schedule", "there"), [({}, ["a"]), (RENEWED, ["a", "b"]), ({**RENEWED, "a": {}}, ["b"])])
def test_a_slot_has_resources_only_if_it_has_a_certificate(
    schedule: Mapping[str, Any], there: list[str], preview: bool
) -> None:
    recorder = built({SCHEDULE: schedule}, preview=preview)

    for resource_type in OF_A_SLOT:
        assert [resource.name[-1] for resource in recorder.all(resource_type)] == there


@slots
def test_a_certificate_follows_the_schedule_of_its_slot(renewed: RecordingMonitor, slot: str) -> None:
    certificate = expected("certificate", slot) | {"generation": NUMBER[slot]}
    assert renewed.one(CERTIFICATE, f"cpo-certificate-{slot}").inputs == certificate


def test_a_common_name_is_cut_at_the_64_characters_of_rfc_5280() -> None:
    recorder = built(of=replace(CPO, secret_stem="x" * 80))

    assert {resource.inputs["commonName"] for resource in recorder.all(CERTIFICATE)} == {"x" * 64}


@slots
def test_a_registration_has_its_certificates_id_and_goes_before_its_successor(
    renewed: RecordingMonitor, slot: str
) -> None:
    registration = renewed.one(REGISTRATION, f"cpo-registration-{slot}")

    assert registration.inputs == expected("registration", slot)
    assert registration.request.deleteBeforeReplace
    assert list(registration.request.hooks.before_create) == ["cpo-proof"], "it asks first whether it may be made"


@slots
def test_a_gate_signs_in_with_the_registered_certificate(renewed: RecordingMonitor, slot: str) -> None:
    gate = renewed.one(GATE, f"cpo-gate-{slot}")

    assert gate.inputs == expected("gate", slot)
    assert gate.secrets == frozenset()
    registrations = {name: renewed.one(REGISTRATION, f"cpo-registration-{name}") for name in "ab"}
    assert {name for name, other in registrations.items() if renewed.waits_for(gate, other)} == {slot}
    assert renewed.waits_for(gate, renewed.one(PRINCIPAL))


@slots
def test_the_document_is_the_current_slots(slot: str) -> None:
    recorder = built({SCHEDULE: {**RENEWED, "current": slot}})

    assert recorder.stack_outputs.values["document"] == expected("document", slot)


@pytest.mark.parametrize(
    ("lifetime_days", "renew_before_days", "renew_after"),
    [
        (60, 45, RENEW_AFTER["a"]),
        (120, 60, "2026-12-19T15:14:25Z"),
        # A day at least lies between two renewals.
        (360, 180, "2026-11-22T08:55:00Z"),
    ],
)
def test_changed_settings_leave_a_certificate_the_life_it_was_issued_for(
    lifetime_days: int, renew_before_days: int, renew_after: str
) -> None:
    """The certificate of the simulation was issued for 90 days."""
    credentials = {"lifetimeDays": lifetime_days, "renewBeforeDays": renew_before_days}
    got = built(credentials=credentials).stack_outputs.values["document"]

    assert (got["notAfter"], got["cannotRenewAfter"]) == ("2027-02-19T08:55:00Z", "2027-02-19T08:55:00Z")
    assert got["renewAfter"] == renew_after


def proof(answer: Any) -> RecordingMonitor:
    """The question that comes before the engine creates a registration, with this answer of the plugin."""

    async def build() -> None:
        source = EntraApplication("cpo", context(), CPO, None)
        value = pulumi.Output.secret(CERTIFICATE_OF_A_STATE.certificate_pem)
        creation = pulumi.ResourceHookArgs("", "", "", "", new_inputs={"value": value})
        await source._require_registrable(creation)

    return run(build, invokes={"idstack:index:requireRegistrable": answer}, refused=True)


def test_the_plugin_is_asked_for_the_certificate_and_its_refusal_counts() -> None:
    monitor = proof({})
    assert monitor.failure is None
    [asked] = [call.arguments for call in monitor.invoked if call.function == "idstack:index:requireRegistrable"]
    assert asked == {
        "cloud": "AzurePublicCloud",
        "tenantId": TENANT,
        "vaultId": VAULT,
        "secretName": "cpo-hc1-json",
        "thumbprint": CERTIFICATE_OF_A_STATE.thumbprint,
        "notBefore": "2026-11-21T08:55:00Z",
    }
    refused = proof(ValueError("it is not registered again"))
    assert str(refused.failure) == "it is not registered again"
