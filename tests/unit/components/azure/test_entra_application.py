"""The credential source `entra-application`: two slots, each issued, registered and proven before it is used."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.azure.entra_application import EntraApplication
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.simulation import a_uuid, issued
from tests.unit.components.world import DEPLOYER, TENANT, entra_application_args

APPLICATION = "azuread:index/application:Application"
PRINCIPAL = "azuread:index/servicePrincipal:ServicePrincipal"
REGISTRATION = "azuread:index/applicationCertificate:ApplicationCertificate"
SCHEDULE = "idstack:index:RenewalSchedule"
CERTIFICATE = "idstack:index:Certificate"
GATE = "idstack:index:SignInGate"

CLIENT_ID = a_uuid("cpo-application", "client")
NOT_BEFORE = {"a": "2026-11-21T08:55:00Z", "b": "2026-11-21T08:54:59Z"}
NOT_AFTER = {"a": "2027-02-19T08:55:00Z", "b": "2027-02-19T08:54:59Z"}

slots = pytest.mark.parametrize("slot", ["a", "b"])


def built(outputs: Mapping[str, Mapping[str, Any]] | None = None, **changes: Any) -> RecordingMonitor:
    """The application; what it would store is exported as `document`."""

    def build() -> None:
        source = EntraApplication("cpo", entra_application_args(**changes))
        pulumi.export("document", source.document.text)
        pulumi.export("shown", source.summary)

    return run(build, outputs=outputs)


@pytest.fixture(scope="module")
def application() -> RecordingMonitor:
    return built()


def document(recorder: RecordingMonitor) -> dict[str, str]:
    read: dict[str, str] = json.loads(recorder.stack_outputs.values["document"])
    return read


def test_the_deployer_owns_the_application_which_has_the_stacks_tag(application: RecordingMonitor) -> None:
    assert application.one(APPLICATION, "cpo-application").inputs == {
        "displayName": "cpo-hc1",
        "owners": [DEPLOYER],
        "tags": ["idstack:test:cpo"],
    }
    assert application.one(PRINCIPAL, "cpo-principal").inputs == {"clientId": CLIENT_ID, "owners": [DEPLOYER]}


def test_a_run_by_somebody_else_changes_no_owner(application: RecordingMonitor) -> None:
    for resource_type in (APPLICATION, PRINCIPAL):
        assert list(application.one(resource_type).request.ignoreChanges) == ["owners"]


@pytest.mark.parametrize("protect", [True, False])
def test_only_the_application_is_protected_against_deletion(protect: bool) -> None:
    recorder = built(protect=json.dumps(protect))

    assert {each.type for each in recorder.registered if each.request.protect} == ({APPLICATION} if protect else set())


def test_the_schedule_gets_the_settings_of_the_credentials() -> None:
    credentials = {"lifetimeDays": 60, "renewBeforeDays": 40, "renewal": "hold"}

    assert built(credentials=credentials).one(SCHEDULE, "cpo-schedule").inputs == {
        "lifetimeDays": 60,
        "renewBeforeDays": 40,
        "mode": "hold",
    }


@slots
def test_a_certificate_follows_the_schedule_of_its_slot(application: RecordingMonitor, slot: str) -> None:
    certificate = application.one(CERTIFICATE, f"cpo-certificate-{slot}")

    assert certificate.inputs == {
        "commonName": "cpo-hc1",
        "keySize": 2048,
        "lifetimeDays": 90,
        "generation": 1,
        "notBefore": NOT_BEFORE[slot],
    }
    assert list(certificate.request.additionalSecretOutputs) == ["privateKeyPem"]


def test_a_common_name_is_cut_at_the_64_characters_of_rfc_5280() -> None:
    recorder = built(display_name="x" * 80)

    assert {each.inputs["commonName"] for each in recorder.all(CERTIFICATE)} == {"x" * 64}


@slots
def test_a_registration_is_deleted_before_its_replacement(application: RecordingMonitor, slot: str) -> None:
    registration = application.one(REGISTRATION, f"cpo-registration-{slot}")

    assert registration.inputs == {
        "applicationId": f"/applications/{a_uuid('cpo-application')}",
        "type": "AsymmetricX509Cert",
        "value": issued(slot).certificate_pem,
        "startDate": NOT_BEFORE[slot],
        "endDate": NOT_AFTER[slot],
    }
    assert registration.request.deleteBeforeReplace


@pytest.mark.parametrize(("current", "spare"), [("a", "b"), ("b", "a")])
def test_the_current_slot_is_registered_before_the_spare(current: str, spare: str) -> None:
    recorder = built(outputs={SCHEDULE: {"current": current}})
    first, second = (recorder.one(REGISTRATION, f"cpo-registration-{slot}") for slot in (current, spare))

    assert recorder.waits_for(second, first)
    assert not recorder.waits_for(first, second)


@slots
def test_a_gate_signs_in_with_the_registered_certificate(application: RecordingMonitor, slot: str) -> None:
    gate = application.one(GATE, f"cpo-gate-{slot}")

    assert gate.inputs == {
        "authorityHost": "https://login.microsoftonline.com/",
        "tenantId": TENANT,
        "clientId": CLIENT_ID,
        "certificatePem": issued(slot).certificate_pem,
        "privateKeyPem": issued(slot).private_key_pem,
        "registration": a_uuid(f"cpo-registration-{slot}"),
        "scope": "https://management.core.windows.net//.default",
        "successes": 5,
        "settleSeconds": 30,
        "timeoutSeconds": 600,
    }
    assert gate.secrets == {"privateKeyPem"}
    assert list(gate.request.additionalSecretOutputs) == ["privateKeyPem"]


@slots
def test_a_gate_waits_for_its_own_registration_and_for_the_principal(application: RecordingMonitor, slot: str) -> None:
    dependencies = application.one(GATE, f"cpo-gate-{slot}").request.dependencies
    other = "b" if slot == "a" else "a"

    assert application.one(REGISTRATION, f"cpo-registration-{slot}").urn in dependencies
    assert application.one(PRINCIPAL).urn in dependencies
    assert application.one(REGISTRATION, f"cpo-registration-{other}").urn not in dependencies


@slots
def test_the_document_is_the_current_slots_in_msi_dataplanes_form(slot: str) -> None:
    recorder = built(outputs={SCHEDULE: {"current": slot}})
    got = document(recorder)

    bundle = base64.b64decode(got.pop("client_secret"), validate=True).decode("ascii")
    assert bundle == issued(slot).private_key_pem + issued(slot).certificate_pem
    assert got == {
        "authentication_endpoint": "https://login.microsoftonline.com/",
        "cannot_renew_after": NOT_AFTER[slot],
        "client_id": CLIENT_ID,
        "not_after": NOT_AFTER[slot],
        "not_before": NOT_BEFORE[slot],
        "object_id": a_uuid("cpo-principal"),
        "renew_after": NOT_BEFORE[slot].replace("2026-11-21", "2027-01-05"),
        "tenant_id": TENANT,
    }


def test_the_document_is_secret_and_what_is_shown_of_it_is_not(application: RecordingMonitor) -> None:
    assert application.stack_outputs.secrets == {"document"}
    assert application.stack_outputs.values["shown"] == {
        "notAfter": "2027-02-19T08:55:00Z",
        "renewAfter": "2027-01-05T08:55:00Z",
        "thumbprint": issued("a").thumbprint,
    }


@pytest.mark.parametrize(
    ("lifetime_days", "renew_before_days", "renew_after"),
    [
        (60, 45, "2027-01-05T08:55:00Z"),
        (120, 60, "2026-12-21T08:55:00Z"),
        # A day at least lies between two renewals.
        (360, 180, "2026-11-22T08:55:00Z"),
    ],
)
def test_changed_settings_leave_a_certificate_the_life_it_was_issued_for(
    lifetime_days: int, renew_before_days: int, renew_after: str
) -> None:
    """The certificate of the simulation was issued for 90 days."""
    credentials = {"lifetimeDays": lifetime_days, "renewBeforeDays": renew_before_days}
    got = document(built(credentials=credentials))

    assert (got["not_after"], got["cannot_renew_after"]) == ("2027-02-19T08:55:00Z", "2027-02-19T08:55:00Z")
    assert got["renew_after"] == renew_after


def test_its_outputs_are_ids_and_what_may_be_shown(application: RecordingMonitor) -> None:
    outputs = application.outputs_of("cpo")

    assert set(outputs) == {"client_id", "principal_id", "shown"}
    assert (outputs["client_id"], outputs["principal_id"]) == (CLIENT_ID, a_uuid("cpo-principal"))
