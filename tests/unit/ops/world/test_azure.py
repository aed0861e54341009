"""What ARM and Graph show, and what they refuse."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.azure.records import FederatedCredentialRecord, RoleAssignmentRecord, SecretMetadata
from identity.credentials.openid_documents import discovery_document, jwks_document
from ops.world.azure import read_azure, read_issuer, read_seen_identity
from ops.world.expected import VaultRecord
from ops.world.seen import (
    AzureView,
    Part,
    SeenApplication,
    SeenIssuer,
    SeenManagedIdentity,
    SeenRoleDefinition,
    Unread,
    known,
)
from tests.unit.ops import answers
from tests.unit.ops.doctor import worlds
from tests.unit.ops.doctor.changes import ISSUED

STATE = worlds.state(worlds.healthy())
THUMBPRINT = "9F3A6C1B0D2E4F5A6B7C8D9E0F1A2B3C4D5E6F70"


@dataclass
class FakeAzure:
    """ARM and Graph: resources by id, applications and principals by client id; `refused` is the answer to the rest.

    An exception by address is raised. `assigned` are the role assignments at every scope, each with its principal.
    """

    by_id: dict[str, Any] = field(default_factory=dict)
    applications: dict[str, Any] = field(default_factory=dict)
    principals: dict[str, Any] = field(default_factory=dict)
    refused: AzureRefusedError | None = None
    assigned: list[tuple[str, Any]] = field(default_factory=list)

    def resource(self, resource_id: str, api_version: str = "") -> Any:
        answer = self.refused or self.by_id.get(resource_id)
        if isinstance(answer, Exception):
            raise answer
        return answer

    public_document = resource

    def resources(self, collection: str, api_version: str, condition: str | None = None) -> list[Any]:
        if condition is None or self.refused is not None:
            return list(self.resource(collection) or ())
        return [assignment for owner, assignment in self.assigned if f"assignedTo('{owner}')" in str(condition)]

    def directory_object(self, path: str) -> Any:
        return {"value": [{"id": "t", "name": "n", "subject": "s", "issuer": "i"}]} if "federated" in path else None

    def directory_objects(self, path: str, condition: str) -> list[Any]:
        self.resource(path)
        held = {"/applications": self.applications, "/servicePrincipals": self.principals}[path]
        return [found for client_id, found in held.items() if condition == f"appId eq '{client_id}'"]


def read(azure: FakeAzure, *parts: Part) -> AzureView:
    return read_azure(cast("AzureClient", azure), STATE, parts)


def test_a_secret_is_its_metadata() -> None:
    name = worlds.identity(worlds.healthy(), ISSUED).secret
    id = f"{STATE.vault_id}/secrets/{name}"
    dates = {"nbf": 1795407929, "exp": 1803183929, "created": 1795408233}

    view = read(FakeAzure({id: answers.secret(id, "abc", THUMBPRINT, enabled=False, **dates)}), Part.SECRETS)

    assert view.secrets[name] == SecretMetadata(
        id=id,
        version="abc",
        uri=f"https://kv.vault.azure.net/secrets/{name}",
        enabled=False,
        created=datetime(2026, 11, 23, 4, 30, 33, tzinfo=UTC),
        not_before=datetime(2026, 11, 23, 4, 25, 29, tzinfo=UTC),
        expires=datetime(2027, 2, 21, 4, 25, 29, tzinfo=UTC),
        tags={"thumbprint": THUMBPRINT},
    )
    assert [secret for secret, found in view.secrets.items() if found is None] == [
        identity.secret for identity in STATE.identities if identity.secret != name
    ]
    assert view.roles == {}, "only the wanted parts are read"


@pytest.mark.parametrize(
    ("identifier", "thumbprint"),
    [(base64.b64encode(bytes.fromhex(THUMBPRINT)).decode(), THUMBPRINT), (THUMBPRINT.lower(), THUMBPRINT)],
)
def test_a_registered_certificate_is_known_by_its_thumbprint(identifier: str, thumbprint: str) -> None:
    client = worlds.identity(worlds.healthy(), ISSUED).client_id
    dates = {"startDateTime": "2026-11-23T04:25:29Z", "endDateTime": "2027-02-21T04:25:29Z"}
    keys = [{"keyId": key_id, "customKeyIdentifier": key_id, **dates} for key_id in (identifier, None)]
    named = {"id": "o", "displayName": "app"}
    azure = FakeAzure(applications={client: {**named, "keyCredentials": keys}})

    found = known(read(azure, Part.APPLICATIONS).applications[client])

    end = datetime(2027, 2, 21, 4, 25, 29, tzinfo=UTC)
    added = (
        f"registered certificate {thumbprint} of app ({identifier})",
        *("registered certificate None of app (None)", "federated credential n of app (t), for s of i"),
    )
    assert found == SeenApplication(certificates={thumbprint: end}, is_enabled=None, added=added)
    azure.principals[client] = {"id": "p", "accountEnabled": False}
    found = known(read(azure, Part.APPLICATIONS).applications[client])
    assert found is not None
    assert found.is_enabled is False
    asked = read(FakeAzure(), Part.APPLICATIONS).applications
    assert asked == dict.fromkeys(one.client_id for one in STATE.identities if one.generation), "the stack's alone"


def test_the_add_on_is_whether_it_runs_and_a_vault_its_tenant_kind_of_access_and_network() -> None:
    properties = {"tenantId": "t", "networkAcls": {"defaultAction": "Deny"}, "publicNetworkAccess": "Disabled"}
    assert read(FakeAzure({STATE.vault_id: {"properties": properties}}), Part.VAULT).vault == VaultRecord(
        tenant_id="t", uses_roles=False, public_network_access="Disabled", default_action="Deny"
    )
    config = {"enableSecretRotation": "false", "rotationPollInterval": "2m"}
    profiles = {"azureKeyvaultSecretsProvider": {"enabled": True, "config": config}}
    cluster = str(STATE.management_cluster)

    def seen(properties: Any) -> Any:
        return read(FakeAzure({cluster: {"properties": properties}}), Part.ADD_ON).add_on

    assert seen({"addonProfiles": profiles}) == {"enabled": True, "config": config}
    assert seen({"addonProfiles": None}) == {}
    assert read(FakeAzure(), Part.ADD_ON).add_on is None


def test_a_refusal_leaves_each_thing_unread_and_is_cut_short() -> None:
    azure = FakeAzure(refused=AzureRefusedError(f"reading x:\n 403 {'{' * 1000}", 403))

    view = read(azure, Part.VAULT, Part.SECRETS, Part.ADD_ON, Part.ROLES, Part.APPLICATIONS)

    mappings = (view.secrets, view.roles, view.assignments, view.definitions, view.applications)
    for part in (view.vault, view.add_on, *(one for mapping in mappings for one in mapping.values())):
        assert isinstance(part, Unread)
        assert part.why.startswith("reading x: 403")
        assert len(part.why) <= 300


def test_an_azure_out_of_reach_leaves_everything_unread() -> None:
    why = Unread("no answer")
    view = read_azure(why, STATE, list(Part))

    assert (view.vault, view.add_on, set(view.secrets.values())) == (why, why, {why})
    read_view = read(FakeAzure(), Part.ROLES)
    assert view.roles.keys() == read_view.roles.keys()
    assert view.assignments.keys() == read_view.assignments.keys()


def test_a_principals_roles_are_read_at_its_places_with_their_definitions() -> None:
    own = worlds.identity(worlds.healthy(), ISSUED)
    custom = "33333333-3333-4333-8333-333333333333"
    principal = own.roles[0].principal_id
    held = answers.role_assignment("/a-scope/a-name", principal, f"/roles/{custom.upper()}")
    last = own.accesses[-1].scope
    definition = {
        "roleName": "Narrow",
        "type": "CustomRole",
        "permissions": [{"actions": ["a/read"], "notActions": ["b"], "dataActions": ["c"], "notDataActions": None}],
    }
    name = f"{last}/providers/Microsoft.Authorization/roleDefinitions/{custom}"

    view = read(FakeAzure({name: {"properties": definition}}, assigned=[(principal, held)]), Part.ROLES)

    assert {view.assignments[access.key] for access in own.accesses} == {(RoleAssignmentRecord.of(held),)}
    permission = {"actions": ("a/read",), "notActions": ("b",), "dataActions": ("c",), "notDataActions": ()}
    assert view.definitions[custom] == SeenRoleDefinition(name="Narrow", is_custom=True, permissions=(permission,))
    assert {own.role_guid for own in STATE.principals} <= view.definitions.keys()


ISSUER = "https://hc2oidc.blob.core.windows.net/hc2oidc"
DISCOVERY, JWKS = f"{ISSUER}/.well-known/openid-configuration", f"{ISSUER}/openid/v1/jwks"
KEYS = jwks_document([{"kty": "RSA", "kid": "kid-1", "n": "n", "e": "AQAB"}])
IDENTITY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc2-disk-i"
PUBLISHED: dict[str, Any] = {DISCOVERY: discovery_document(ISSUER), JWKS: KEYS}


def azure(found: dict[str, Any]) -> AzureClient:
    return cast("AzureClient", FakeAzure(found))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({DISCOVERY: None}, "there is no discovery document"),
        ({JWKS: None}, "there is no JWKS"),
        ({DISCOVERY: discovery_document(f"{ISSUER}/")}, f'its discovery document names the issuer "{ISSUER}/"'),
        ({JWKS: b"{}"}, "its JWKS has no list of keys"),
        ({DISCOVERY: AzureRefusedError("reading it:\n 409 PublicAccessNotPermitted", 409)}, "reading it: 409 Public"),
    ],
    ids=["discovery", "jwks", "another-issuer", "no-keys", "closed"],
)
def test_what_keeps_entra_id_from_the_keys_is_the_issuers_problem(changes: dict[str, Any], problem: str) -> None:
    assert read_issuer(azure(PUBLISHED), ISSUER) == SeenIssuer(keys=("kid-1",))
    found = read_issuer(azure({**PUBLISHED, **changes}), ISSUER)

    assert found.keys == ()
    assert found.problem.startswith(problem)
    for status in (None, 503):  # no answer here is not blamed on it
        with pytest.raises(AzureRefusedError):
            read_issuer(azure({DISCOVERY: AzureRefusedError("no route", status)}), ISSUER)


def test_a_managed_identity_has_its_federated_credentials() -> None:
    credentials = f"{IDENTITY}/federatedIdentityCredentials"
    credential = answers.federated_credential(f"{credentials}/c", "system:serviceaccount:a:b", issuer=ISSUER)
    found = {IDENTITY: answers.managed_identity(IDENTITY, "c"), credentials: [credential]}

    records = (FederatedCredentialRecord.of(credential),)
    assert read_seen_identity(azure(found), IDENTITY) == SeenManagedIdentity(client_id="c", credentials=records)
    assert read_seen_identity(azure({}), IDENTITY) is None
