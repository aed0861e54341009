"""One identity of the control plane: from its credential source to its secret, as the plugin gets it, and its roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from components.azure.control_plane_identity import ControlPlaneIdentityComponent, ImportedCredential
from identity.catalogue_rows import RoleGrant, Scope
from identity.roles import IMAGE_REGISTRY_ROLE
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.simulation import PROVEN_AT, RENEWED, a_uuid, issued
from tests.unit.components.world import (
    DOCUMENT,
    GROUPS,
    REGISTRY,
    TENANT,
    VAULT,
    context,
    grants,
    imported_credential,
    key_vault,
    row,
)

SECRET = "idstack:index:CredentialSecret"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
GATE = "idstack:index:SignInGate"
CERTIFICATE = "idstack:index:Certificate"
GUID = "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5"
PLACE = {
    "cloud": "AzurePublicCloud",
    "tenantId": TENANT,
    "vaultId": VAULT,
    "secretName": "ciro-hc1-json",
    "objectEncoding": "utf-8",
    "tags": {"cost_center": "1", "tenant_id": "2"},
    "ownerId": "an-owner-id",
}
# With a second scope, which the catalogue's row does not have.
ROW = replace(row("imageRegistry"), hypershift=RoleGrant(IMAGE_REGISTRY_ROLE, (Scope.MANAGED, Scope.VNET)))


def built(
    imported: ImportedCredential | None = None, outputs: Mapping[str, Mapping[str, Any]] | None = None
) -> RecordingMonitor:
    def build() -> None:
        ControlPlaneIdentityComponent("ciro", context(key_vault(), tags=PLACE["tags"]), ROW, imported, None)

    return run(build, outputs=outputs)


@pytest.fixture(scope="module")
def application() -> RecordingMonitor:
    return built()


def test_an_applications_credential_is_in_its_secret(application: RecordingMonitor) -> None:
    secret = application.one(SECRET, "ciro-credential-secret")

    assert secret.inputs == {
        **PLACE,
        "authorityHost": "https://login.microsoftonline.com/",
        "clientId": a_uuid("ciro-entra-application", "client"),
        "objectId": a_uuid("ciro-entra-principal"),
        "thumbprint": issued("a").thumbprint,
        "generation": "a1",
        "provenAt": PROVEN_AT,
        "notBefore": "2026-11-21T08:55:00Z",
        "notAfter": "2027-02-19T08:55:00Z",
        "renewAfter": "2027-01-01T12:45:35Z",
        "cannotRenewAfter": "2027-02-19T08:55:00Z",
    }
    assert secret.secrets == frozenset()
    assert application.waits_for(secret, application.one("azure-native:keyvault:Vault"))
    assert application.outputs_of("ciro") == {
        "client_id": a_uuid("ciro-entra-application", "client"),
        "principal_id": a_uuid("ciro-entra-principal"),
        "secret_name": "ciro-hc1-json",
    }


@pytest.mark.parametrize(("current", "spare"), [("a", "b"), ("b", "a")])
def test_the_secret_waits_for_the_gate_of_the_current_slot_only(current: str, spare: str) -> None:
    recorder = built(None, {"idstack:index:RenewalSchedule": {**RENEWED, "current": current}})
    secret = recorder.one(SECRET)

    assert recorder.waits_for(secret, recorder.one(GATE, f"ciro-entra-gate-{current}"))
    assert not recorder.waits_for(secret, recorder.one(GATE, f"ciro-entra-gate-{spare}"))
    assert not recorder.waits_for(secret, recorder.one(CERTIFICATE, f"ciro-entra-certificate-{spare}"))


def test_the_service_principal_gets_the_role_at_every_scope(application: RecordingMonitor) -> None:
    assert grants(application, "ciro") == {(GUID, f"{GROUPS}/hc1-managed"), (GUID, f"{GROUPS}/hc1-network")}
    assert {resource.inputs["principalId"] for resource in application.all(ASSIGNMENT)} == {
        a_uuid("ciro-entra-principal")
    }
    assignment = application.all(ASSIGNMENT)[0]
    assert not any(application.waits_for(assignment, gate) for gate in application.all(GATE)), "no sign-in is needed"


def test_an_imported_credential_is_stored_in_the_same_form() -> None:
    recorder = built(imported_credential(DOCUMENT))
    secret = recorder.one(SECRET, "ciro-credential-secret")

    assert (secret.inputs, secret.secrets) == ({**PLACE, **DOCUMENT}, frozenset())
    own = [
        resource.type for resource in recorder.registered if resource.type.startswith(("azuread:", "idstack:index:"))
    ]
    assert own == [SECRET], "it needs no application"
    assert {resource.inputs["principalId"] for resource in recorder.all(ASSIGNMENT)} == {REGISTRY["principalId"]}


def test_a_credential_that_is_in_the_vault_already_is_left_alone() -> None:
    recorder = built(imported_credential())

    assert recorder.all(SECRET) == []
    assert len(recorder.all(ASSIGNMENT)) == 2
