"""Certificates, client secrets and federated credentials of applications and service principals."""

from __future__ import annotations

import base64
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import ClientSecretCredential
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from localcloud.azure.entra.api import app as entra
from localcloud.azure.graph.permissions import WRITE_ALL, WRITE_OWNED
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.hosts import Certificates, Serve
from tests.azure.graph.world import GRAPH, As, code, created, key, signed_in

# One federated credential of an application: read, changed, made by an upsert; what Graph refuses of them.

TRUST: dict[str, Any] = {
    **{"name": "ci", "issuer": "https://issuer.example", "subject": "s"},
    "audiences": ["api://AzureADTokenExchange"],
}
UPSERT = {"Prefer": "create-if-missing"}


@pytest.fixture
def path(graph: httpx.Client) -> str:
    application = created(graph, uniqueName="mine")
    return f"/applications/{application['id']}/federatedIdentityCredentials"


def test_a_credential_is_read_by_id_and_by_name_until_it_is_removed(graph: httpx.Client, path: str) -> None:
    made = graph.post(path, json=TRUST).json()

    assert TRUST.items() <= made.items()
    assert [credential["name"] for credential in graph.get(path).json()["value"]] == ["ci"]
    for addressed in (f"/{made['id']}", f"/{made['id'].upper()}", "/ci", "(name='ci')"):
        assert TRUST.items() <= graph.get(f"{path}{addressed}").json().items()
    assert code(graph.get(f"{path}/nobody")) == (404, "Request_ResourceNotFound")
    assert [graph.delete(f"{path}/ci").status_code for _ in range(2)] == [204, 404]
    assert graph.get(path).json()["value"] == []


def test_a_credential_is_changed_but_for_its_name(graph: httpx.Client, path: str) -> None:
    graph.post(path, json=TRUST)

    assert graph.patch(f"{path}/ci", json={"subject": "t", "description": None}).status_code == 204
    assert graph.get(f"{path}/ci").json()["subject"] == "t"
    assert code(graph.patch(f"{path}/ci", json={"name": "other"}))[0] == 400


def test_an_upsert_makes_the_credential_once(graph: httpx.Client, path: str) -> None:
    key = "/applications(uniqueName='mine')/federatedIdentityCredentials(name='two')"
    body = {name: value for name, value in TRUST.items() if name != "name"}

    answers = [graph.patch(key, json=body, headers=UPSERT).status_code for _ in range(2)]

    assert answers == [201, 204]
    assert graph.get(f"{path}/two").json()["subject"] == "s"
    assert graph.patch(f"{path}/three", json=body).status_code == 404
    assert code(graph.patch(key, json=body, headers={"Prefer": "return=minimal"})) == (501, "NotEmulated")


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"issuer": "http://issuer.example"}, (400, "InvalidFederatedIdentityCredentialValue")),
        ({"issuer": "https://"}, (400, "InvalidFederatedIdentityCredentialValue")),
        ({"audiences": ["a", "b"]}, (400, "InvalidFederatedIdentityCredentialValue")),
        ({"audiences": "a"}, (400, "InvalidFederatedIdentityCredentialValue")),
        ({"name": "n" * 121}, (400, "InvalidFederatedIdentityCredentialValue")),
        ({"subject": "s" * 601}, (400, "InvalidFederatedIdentityCredentialValue")),
        ({"subject": ""}, (400, "Request_BadRequest")),
        ({"claimsMatchingExpression": {"value": "x"}}, (501, "NotEmulated")),
    ],
    ids=["http", "no host", "two audiences", "a text", "long name", "long subject", "no subject", "expression"],
)
def test_a_wrong_credential_is_refused(
    graph: httpx.Client, path: str, changed: dict[str, Any], refused: tuple[int, str]
) -> None:
    assert code(graph.post(path, json={**TRUST, **changed})) == refused


def test_there_are_twenty_at_most(graph: httpx.Client, path: str) -> None:
    answers = [graph.post(path, json={**TRUST, "name": f"n{i}", "subject": str(i)}).status_code for i in range(21)]

    assert answers == [201] * 20 + [400]


def test_patching_certificates_keeps_those_named_by_their_key_id(graph: httpx.Client) -> None:
    path = f"/applications/{created(graph)['id']}"
    assert graph.patch(path, json={"keyCredentials": [key(displayName="a")]}).status_code == 204
    current = graph.get(path).json()["keyCredentials"]
    added = graph.patch(path, json={"keyCredentials": [*current, key(displayName="b", pem=True)]})

    assert added.status_code == 204
    both = graph.get(path).json()["keyCredentials"]
    assert [key_credential["displayName"] for key_credential in both] == ["a", "b"]
    assert [key_credential["key"] for key_credential in both] == [None, None], "content comes with $select alone"
    selected = graph.get(path, params={"$select": "keyCredentials"}).json()
    assert all(key_credential["key"] for key_credential in selected["keyCredentials"])
    assert "appId" not in selected


def test_a_certificate_may_come_in_lines_as_the_cli_sends_it(graph: httpx.Client) -> None:
    path, body = f"/applications/{created(graph)['id']}", key()
    in_lines = base64.encodebytes(base64.b64decode(body["key"])).decode()

    assert "\n" in in_lines.strip()
    assert graph.patch(path, json={"keyCredentials": [{**body, "key": in_lines}]}).status_code == 204


def test_a_certificate_keeps_the_key_id_that_a_client_gives_it(graph: httpx.Client) -> None:
    path, wanted = f"/applications/{created(graph)['id']}", str(uuid.uuid4())
    body = {"keyCredentials": [key(keyId=wanted)]}

    assert [graph.patch(path, json=body).status_code for _ in range(2)] == [204, 204]
    assert code(graph.patch(path, json={"keyCredentials": [key(keyId=wanted)]})) == (400, "Request_BadRequest")
    assert [key_credential["keyId"] for key_credential in graph.get(path).json()["keyCredentials"]] == [wanted]


def test_a_certificate_without_an_rsa_key_is_refused(graph: httpx.Client) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, private.public_key(), 1, now, now + timedelta(days=1))
        .sign(private, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )
    path = f"/applications/{created(graph)['id']}"
    body = {"keyCredentials": [key(key=base64.b64encode(certificate).decode())]}

    assert code(graph.patch(path, json=body)) == (400, "Request_BadRequest")


def test_a_managed_identity_takes_no_certificate(azure: LocalAzure, caller_as: As) -> None:
    identity = azure.directory.create_managed_identity("/subscriptions/s/x", "identity")
    everything = caller_as(signed_in(azure, WRITE_ALL))

    path = f"/servicePrincipals/{identity.object_id}"
    assert everything.get(path).json()["alternativeNames"] == ["isExplicit=True", "/subscriptions/s/x"]
    assert everything.patch(path, json={"keyCredentials": [key()]}).status_code == 403


@pytest.mark.parametrize("collection", ["applications", "servicePrincipals"])
def test_a_client_secret_is_shown_once_and_signs_in_until_it_is_removed(
    collection: str,
    azure: LocalAzure,
    caller_as: As,
    deployer: ServicePrincipal,
    serve: Serve,
    certificates: Certificates,
) -> None:
    http = caller_as(deployer)
    application = http.post("/applications", json={"displayName": "pipeline"}).json()
    http.post("/servicePrincipals", json={"appId": application["appId"]}).raise_for_status()
    member = http.get(f"/{collection}(appId='{application['appId']}')").json()
    path = f"/{collection}/{member['id']}"

    shown = http.post(f"{path}/addPassword", json={"passwordCredential": {"displayName": "ci"}}).json()

    listed = http.get(path)
    [kept] = listed.json()["passwordCredentials"]
    assert {**kept, "secretText": shown["secretText"]} == {
        name: value for name, value in shown.items() if name != "@odata.context"
    }
    assert shown["secretText"] not in listed.text
    authority = serve(entra(azure))

    def sign_in() -> str:
        credential = ClientSecretCredential(
            azure.tenant_id,
            application["appId"],
            shown["secretText"],
            authority=authority,
            disable_instance_discovery=True,
            connection_verify=str(certificates.ca_file),
        )
        return credential.get_token(f"{GRAPH}/.default").token

    assert sign_in()
    other = caller_as(signed_in(azure, WRITE_OWNED))
    assert other.post(f"{path}/addPassword", json={}).status_code == 403
    assert other.post(f"{path}/removePassword", json={"keyId": kept["keyId"]}).status_code == 403
    assert http.post(f"{path}/removePassword", json={"keyId": kept["keyId"]}).status_code == 204
    assert http.get(path).json()["passwordCredentials"] == []
    with pytest.raises(ClientAuthenticationError, match="AADSTS7000215"):
        sign_in()
