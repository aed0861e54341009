"""What exists of the scripts' identities, looked up at a real ARM, Graph and Key Vault."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identity.azure.client import AzureClient
from identity.credentials.certificate import issue
from localcloud.testing.arm import GROUP, ArmWorld
from localcloud.testing.azure import Application
from ops.adoption.entry import FoundApplication, FoundResources, look_up
from ops.adoption.files import ControlPlaneFile, ScriptIdentity
from ops.stack.errors import CommandError
from tests.unit.ops.adoption.scripted import ISSUER, MANAGED_ROW, ROW

SECRET = "cpo-p-json"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/registry-MI-p"
FEDERATED = f"{IDENTITY}/federatedIdentityCredentials/registry-MI-p-fed-id"


@pytest.fixture
def application(world: ArmWorld) -> Application:
    """The application of the identity, in a world with a vault and a managed identity."""
    world.create_vault()
    subject = MANAGED_ROW.subjects[0].subject
    trust = {"issuer": ISSUER, "subject": subject, "audiences": ["openshift"]}
    assert world.call("PUT", IDENTITY, {"location": "westeurope"}).status_code == 201
    assert world.call("PUT", FEDERATED, {"properties": trust}).status_code == 201
    return world.cloud.directory.create_application("cpo-p")


def found(azure: AzureClient, world: ArmWorld, client_id: str, vault: str = "KV-idstack-local") -> FoundResources:
    managed = world.call("GET", IDENTITY).json()
    named = ControlPlaneFile({ROW.field: ScriptIdentity(client_id, SECRET, "utf-8")}, {}, vault)
    data_plane = {MANAGED_ROW.field: managed["properties"]["clientId"].lower()} if "properties" in managed else {}
    return look_up(azure, world.cloud.subscription_id, named, data_plane)


def document(**changes: Any) -> str:
    """A document as `setup_MIv3_kv.sh` writes it."""
    made = issue("cpo-p", not_before=datetime.now(UTC) - timedelta(hours=1), lifetime=timedelta(days=90))
    bundle = f"{made.private_key_pem}{made.certificate_pem}"
    fields = {
        "authentication_endpoint": "https://login.microsoftonline.com/",
        "client_id": "6f2c1e7a-0000-4000-8000-00000000aaaa",
        "client_secret": base64.b64encode(bundle.encode()).decode(),
        "tenant_id": "6f2c1e7a-0000-4000-8000-00000000eeee",
        "not_before": made.not_before.isoformat(),
        "not_after": made.not_after.isoformat(),
        **changes,
    }
    return json.dumps(fields)


def test_everything_that_the_files_name_is_found(azure: AzureClient, world: ArmWorld, application: Application) -> None:
    assert found(azure, world, application.app_id).applications[ROW.field].principal_id is None
    principal = world.cloud.directory.create_service_principal(application.app_id)
    managed = world.call("GET", IDENTITY).json()["properties"]

    existing = found(azure, world, application.app_id)

    one = existing.applications[ROW.field]
    assert one == FoundApplication(application.object_id, "cpo-p", principal.object_id)
    identity = existing.managed[MANAGED_ROW.field]
    assert (identity.id.name, identity.location) == ("registry-MI-p", "westeurope")
    assert identity.principal_id == managed["principalId"]
    assert identity.federated == {(ISSUER, MANAGED_ROW.subjects[0].subject): "registry-MI-p-fed-id"}
    assert existing.vault is not None
    assert existing.vault["name"] == "kv-idstack-local"
    assert existing.secrets[ROW.field] == ["no such secret"]


def test_all_that_does_not_exist_is_named_at_once(azure: AzureClient, world: ArmWorld) -> None:
    named = ControlPlaneFile(
        {ROW.field: ScriptIdentity("6f2c1e7a-0000-4000-8000-00000000aaaa", SECRET, "")}, {}, "kv-gone"
    )

    with pytest.raises(CommandError) as refused:
        look_up(azure, world.cloud.subscription_id, named, {MANAGED_ROW.field: "x"})

    gone = ("no key vault kv-gone", f"{ROW.field}: no application", f"{MANAGED_ROW.field}: no managed identity")
    assert [problem for problem in gone if problem not in str(refused.value)] == []


PKCS12 = base64.b64encode(b"0\x82\x0a\x00").decode()


@pytest.mark.parametrize(
    ("changes", "remarks"),
    [
        ({}, ["document without renew_after, cannot_renew_after"]),
        ({"renew_after": "2027-01-01T00:00:00Z", "cannot_renew_after": "2027-01-01T00:00:00Z"}, []),
        ({"client_id": ""}, ["document that pods refuse"]),
        ({"client_secret": PKCS12}, ["document that pods refuse"]),
    ],
)
def test_remarks_say_what_a_document_lacks(
    azure: AzureClient,
    world: ArmWorld,
    application: Application,
    changes: dict[str, Any],
    remarks: list[str],
) -> None:
    assert world.vault("PUT", f"/secrets/{SECRET}", {"value": document(**changes)}).status_code == 200

    assert found(azure, world, application.app_id).secrets[ROW.field] == ["secret without dates", *remarks]
    subscription = f"/subscriptions/{world.cloud.subscription_id}"
    for assignment in world.resources.below(subscription, "Microsoft.Authorization/roleAssignments"):
        if "b86a8fe4" in assignment["properties"]["roleDefinitionId"]:  # Key Vault Secrets Officer
            world.resources.delete(assignment["id"])
    unread = "document not read: the deployer lacks the right"  # who may read no secret still adopts it
    assert found(azure, world, application.app_id).secrets[ROW.field] == ["secret without dates", unread]


def test_a_document_of_pkcs12_with_dates_is_told_by_its_secret(
    azure: AzureClient, world: ArmWorld, application: Application
) -> None:
    """As the scripts store what the vault made."""
    policy = {"issuer": {"name": "Self"}, "x509_props": {"subject": "CN=cpo-p"}}
    world.grant(world.deployer, "Key Vault Administrator", GROUP)
    assert world.vault("POST", "/certificates/cpo-p/create", {"policy": policy}).status_code == 202
    value = world.vault("GET", "/secrets/cpo-p").json()["value"]
    stored = {"value": document(client_secret=value), "attributes": {"exp": 1_900_000_000}}
    assert world.vault("PUT", f"/secrets/{SECRET}", stored).status_code == 200

    remarks = found(azure, world, application.app_id).secrets[ROW.field]

    assert remarks == ["PKCS#12", "document without renew_after, cannot_renew_after"]
