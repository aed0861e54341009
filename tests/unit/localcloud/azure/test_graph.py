"""Graph: duplicates, owners, certificates through PATCH, filters, soft delete."""

from __future__ import annotations

import base64
import ssl
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from azure.identity import ClientSecretCredential
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from identity.access.login import AKS_CLIENT_APP_ID
from identity.clouds import LOCAL_TENANT_ID
from identity.credentials.certificate import issue
from localcloud.azure.entra.api import app as entra
from localcloud.azure.graph.api import app
from localcloud.azure.graph.permissions import WRITE_ALL, WRITE_OWNED
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.objects import ServicePrincipal
from tests.unit.hosts import Certificates, Serve

GRAPH = "https://graph.microsoft.com"


def signed_in(azure: LocalAzure, *roles: str) -> ServicePrincipal:
    """A new service principal with these application permissions."""
    application = azure.directory.create_application("caller")
    principal = azure.directory.create_service_principal(application.app_id)
    for role in roles:
        azure.directory.grant(principal.object_id, role)
    granted = azure.directory.service_principal(principal.object_id)
    assert granted is not None
    return granted


As = Callable[[ServicePrincipal], httpx.Client]


@pytest.fixture
def caller_as(azure: LocalAzure, serve: Serve, certificates: Certificates) -> Iterator[As]:
    """Clients of Graph that carry a service principal's token."""
    base = serve(app(azure))
    opened: list[httpx.Client] = []

    def connect(principal: ServicePrincipal) -> httpx.Client:
        bearer = {"Authorization": f"Bearer {azure.tokens.issue(principal, GRAPH)}"}
        trusting = ssl.create_default_context(cafile=certificates.ca_file)
        opened.append(httpx.Client(base_url=f"{base}/v1.0", headers=bearer, verify=trusting))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


@pytest.fixture
def deployer(azure: LocalAzure) -> ServicePrincipal:
    return signed_in(azure, WRITE_OWNED)


@pytest.fixture
def graph(caller_as: As, deployer: ServicePrincipal) -> httpx.Client:
    return caller_as(deployer)


def created(graph: httpx.Client, name: str = "app", **properties: Any) -> dict[str, Any]:
    answer = graph.post("/applications", json={"displayName": name, **properties})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def key(*, pem: bool = False, **changed: Any) -> dict[str, Any]:
    """A keyCredential for a new certificate of 90 days."""
    issued = issue("app", not_before=datetime.now(UTC) - timedelta(minutes=5), lifetime=timedelta(days=90))
    certificate = x509.load_pem_x509_certificate(issued.certificate_pem.encode())
    content = certificate.public_bytes(Encoding.PEM if pem else Encoding.DER)
    body = {"type": "AsymmetricX509Cert", "usage": "Verify", "key": base64.b64encode(content).decode()}
    return {**body, **changed}


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def values(answer: httpx.Response, name: str = "id") -> list[Any]:
    return [item[name] for item in answer.json()["value"]]


def test_two_applications_may_have_one_display_name(graph: httpx.Client) -> None:
    first, second = created(graph, "twin"), created(graph, "twin")

    assert first["appId"] != second["appId"]
    found = graph.get("/applications", params={"$filter": "displayName eq 'twin'"})
    assert sorted(values(found)) == sorted([first["id"], second["id"]])


def test_a_unique_name_is_unique_and_can_be_upserted(graph: httpx.Client) -> None:
    path = "/applications(uniqueName='idstack-hc1')"
    missing = graph.patch(path, json={"displayName": "hc1"})
    assert code(missing) == (404, "Request_ResourceNotFound")

    made = graph.patch(path, json={"displayName": "hc1"}, headers={"Prefer": "create-if-missing"})
    again = graph.patch(path, json={"displayName": "renamed"}, headers={"Prefer": "create-if-missing"})
    other = graph.post("/applications", json={"displayName": "other", "uniqueName": "idstack-hc1"})

    assert (made.status_code, again.status_code) == (201, 204)
    assert code(other) == (400, "Request_BadRequest")
    found = graph.get("/applications", params={"$filter": "uniqueName eq 'idstack-hc1'"})
    assert values(found, "displayName") == ["renamed"]


def test_filters_support_ids_tags_quotes_and_conjunctions(graph: httpx.Client) -> None:
    one = created(graph, "it's one", tags=["hc1"])
    created(graph, "two", tags=["hc2"])

    for expression in (
        f"appId eq '{one['appId']}'",
        "displayName eq 'it''s one'",
        "startswith(displayName,'it''s')",
        "tags/any(t:t eq 'hc1')",
        "tags/any(t:t eq 'hc1') and displayName eq 'It''s One'",
    ):
        found = graph.get("/applications", params={"$filter": expression})
        assert values(found) == [one["id"]], expression
    assert code(graph.get("/applications", params={"$filter": "notes eq 'x'"})) == (400, "Request_UnsupportedQuery")


def test_owned_by_manages_its_own_applications_and_only_reads_others(
    azure: LocalAzure, caller_as: As, graph: httpx.Client
) -> None:
    mine = created(graph)
    stranger = caller_as(signed_in(azure, WRITE_OWNED))

    assert stranger.get(f"/applications/{mine['id']}").status_code == 200
    for refused in (
        stranger.patch(f"/applications/{mine['id']}", json={"displayName": "taken"}),
        stranger.delete(f"/applications/{mine['id']}"),
        stranger.post("/servicePrincipals", json={"appId": mine["appId"]}),
        caller_as(signed_in(azure)).get("/applications"),
        caller_as(signed_in(azure, "Application.Read.All")).post("/applications", json={"displayName": "x"}),
    ):
        assert code(refused) == (403, "Authorization_RequestDenied")
    assert caller_as(signed_in(azure, WRITE_ALL)).delete(f"/applications/{mine['id']}").status_code == 204


def test_an_added_owner_may_write_and_a_removed_one_may_not(
    azure: LocalAzure, caller_as: As, graph: httpx.Client
) -> None:
    mine = created(graph)
    other = signed_in(azure, WRITE_OWNED)
    reference = {"@odata.id": f"{GRAPH}/v1.0/directoryObjects/{other.object_id}"}
    path = f"/applications/{mine['id']}"

    assert graph.post(f"{path}/owners/$ref", json=reference).status_code == 204
    assert code(graph.post(f"{path}/owners/$ref", json=reference)) == (400, "Request_BadRequest")
    assert other.object_id in values(graph.get(f"{path}/owners"))
    assert caller_as(other).patch(path, json={"notes": "mine now"}).status_code == 204
    assert graph.delete(f"{path}/owners/{other.object_id}/$ref").status_code == 204
    assert caller_as(other).patch(path, json={"notes": "still"}).status_code == 403


def test_a_request_without_or_with_a_foreign_token_is_401(
    azure: LocalAzure, deployer: ServicePrincipal, graph: httpx.Client
) -> None:
    arm = azure.tokens.issue(deployer, "https://management.azure.com")

    for header in ("", "Bearer x", f"Bearer {arm}"):
        answer = graph.get("/applications", headers={"Authorization": header})
        assert code(answer) == (401, "InvalidAuthenticationToken")


def test_patching_certificates_keeps_those_named_by_their_key_id(graph: httpx.Client) -> None:
    path = f"/applications/{created(graph)['id']}"
    assert graph.patch(path, json={"keyCredentials": [key(displayName="a")]}).status_code == 204
    current = graph.get(path).json()["keyCredentials"]
    added = graph.patch(path, json={"keyCredentials": [*current, key(displayName="b", pem=True)]})

    assert added.status_code == 204
    both = graph.get(path).json()["keyCredentials"]
    assert [each["displayName"] for each in both] == ["a", "b"]
    assert [each["key"] for each in both] == [None, None], "content comes with $select alone"
    selected = graph.get(path, params={"$select": "keyCredentials"}).json()
    assert all(each["key"] for each in selected["keyCredentials"])
    assert "appId" not in selected


def test_a_certificate_keeps_the_key_id_that_a_client_gives_it(graph: httpx.Client) -> None:
    path, wanted = f"/applications/{created(graph)['id']}", str(uuid.uuid4())
    body = {"keyCredentials": [key(keyId=wanted)]}

    assert [graph.patch(path, json=body).status_code for _ in range(2)] == [204, 204]
    assert code(graph.patch(path, json={"keyCredentials": [key(keyId=wanted)]})) == (400, "Request_BadRequest")
    assert [each["keyId"] for each in graph.get(path).json()["keyCredentials"]] == [wanted]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"keyId": "one"}, "Request_BadRequest"),
        ({"key": "bm90IGEgY2VydGlmaWNhdGU="}, "Request_BadRequest"),
        ({"usage": "Sign"}, "Request_BadRequest"),
        ({"endDateTime": "2999-01-01T00:00:00Z"}, "KeyCredentialsInvalidEndDate"),
        ({"startDateTime": "2000-01-01T00:00:00Z"}, "KeyCredentialsInvalidStartDate"),
    ],
)
def test_a_bad_certificate_is_refused(graph: httpx.Client, changed: dict[str, Any], expected: str) -> None:
    path = f"/applications/{created(graph)['id']}"

    assert code(graph.patch(path, json={"keyCredentials": [key(**changed)]})) == (400, expected)
    assert graph.get(path).json()["keyCredentials"] == []


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


def test_an_unknown_property_is_refused(graph: httpx.Client) -> None:
    answer = graph.post("/applications", json={"displayName": "app", "dispalyName": "x"})

    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Invalid property 'dispalyName'.")


def test_an_application_has_one_service_principal(graph: httpx.Client) -> None:
    mine = created(graph)
    body = {"appId": mine["appId"]}
    principal = graph.post("/servicePrincipals", json=body)

    assert principal.json()["servicePrincipalType"] == "Application"
    assert graph.get(f"/servicePrincipals(appId='{mine['appId']}')").json()["id"] == principal.json()["id"]
    assert code(graph.post("/servicePrincipals", json=body)) == (409, "Request_MultipleObjectsWithSameKeyValue")


def test_a_managed_identity_takes_no_certificate(azure: LocalAzure, caller_as: As) -> None:
    identity = azure.directory.create_managed_identity("/subscriptions/s/x", "identity")
    everything = caller_as(signed_in(azure, WRITE_ALL))

    path = f"/servicePrincipals/{identity.object_id}"
    assert everything.get(path).json()["alternativeNames"] == ["isExplicit=True", "/subscriptions/s/x"]
    assert everything.patch(path, json={"keyCredentials": [key()]}).status_code == 403


def test_a_deleted_application_can_be_restored_or_purged(graph: httpx.Client) -> None:
    mine = created(graph, uniqueName="mine")
    principal = graph.post("/servicePrincipals", json={"appId": mine["appId"]}).json()
    assert graph.delete(f"/applications/{mine['id']}").status_code == 204
    assert graph.get(f"/applications/{mine['id']}").status_code == 404
    assert graph.get(f"/servicePrincipals/{principal['id']}").status_code == 404
    assert values(graph.get("/directory/deletedItems/microsoft.graph.application")) == [mine["id"]]
    assert values(graph.get("/directory/deletedItems/microsoft.graph.servicePrincipal")) == [principal["id"]]

    assert graph.post(f"/directory/deletedItems/{mine['id']}/restore").json()["appId"] == mine["appId"]
    assert graph.get(f"/applications/{mine['id']}").json()["uniqueName"] == "mine"
    assert graph.get(f"/servicePrincipals/{principal['id']}").status_code == 200

    graph.delete(f"/applications/{mine['id']}")
    assert graph.delete(f"/directory/deletedItems/{mine['id']}").status_code == 204
    assert graph.post(f"/directory/deletedItems/{mine['id']}/restore").status_code == 404


def test_a_deleted_application_keeps_its_unique_name_until_it_is_purged(graph: httpx.Client) -> None:
    mine = created(graph, uniqueName="mine")
    graph.delete(f"/applications/{mine['id']}")
    again = {"displayName": "again", "uniqueName": "mine"}
    assert code(graph.post("/applications", json=again)) == (400, "Request_BadRequest")

    graph.delete(f"/directory/deletedItems/{mine['id']}")
    assert graph.post("/applications", json=again).status_code == 201


def test_an_identifier_taken_meanwhile_blocks_the_restore(graph: httpx.Client) -> None:
    mine = created(graph, identifierUris=["api://mine"])
    graph.delete(f"/applications/{mine['id']}")
    created(graph, identifierUris=["api://mine"])

    assert code(graph.post(f"/directory/deletedItems/{mine['id']}/restore")) == (400, "Request_BadRequest")


def test_a_client_secret_is_shown_once_and_signs_in(
    azure: LocalAzure, caller_as: As, deployer: ServicePrincipal, serve: Serve, certificates: Certificates
) -> None:
    http = caller_as(deployer)
    application = http.post("/applications", json={"displayName": "pipeline"}).json()
    http.post("/servicePrincipals", json={"appId": application["appId"]}).raise_for_status()
    path = f"/applications/{application['id']}"

    shown = http.post(f"{path}/addPassword", json={"passwordCredential": {"displayName": "ci"}}).json()

    listed = http.get(path)
    [kept] = listed.json()["passwordCredentials"]
    assert {**kept, "secretText": shown["secretText"]} == {
        name: value for name, value in shown.items() if name != "@odata.context"
    }
    assert shown["secretText"] not in listed.text
    credential = ClientSecretCredential(
        azure.tenant_id,
        application["appId"],
        shown["secretText"],
        authority=serve(entra(azure)),
        disable_instance_discovery=True,
        connection_verify=str(certificates.ca_file),
    )
    assert credential.get_token(f"{GRAPH}/.default").token
    other = caller_as(signed_in(azure, WRITE_OWNED))
    assert other.post(f"{path}/addPassword", json={}).status_code == 403


def test_federated_credentials_are_added_listed_and_removed(caller_as: As, deployer: ServicePrincipal) -> None:
    http = caller_as(deployer)
    path = f"/applications/{http.post('/applications', json={'displayName': 'pipeline'}).json()['id']}"
    wanted = {"name": "ci", "issuer": "https://issuer", "subject": "s", "audiences": ["api://AzureADTokenExchange"]}
    federated = f"{path}/federatedIdentityCredentials"

    made = http.post(federated, json=wanted)

    assert made.status_code == 201
    assert wanted.items() <= made.json().items()
    assert [each["name"] for each in http.get(federated).json()["value"]] == ["ci"]
    assert http.post(federated, json={**wanted, "subject": ""}).status_code == 400
    assert http.post(federated, json={**wanted, "claims": "x"}).status_code == 400
    assert http.delete(f"{federated}/ci").status_code == 204
    assert http.delete(f"{federated}/ci").status_code == 404
    assert http.get(federated).json()["value"] == []


def test_what_clients_of_graph_send_beside_the_reference_is_taken(graph: httpx.Client) -> None:
    """Annotations of OData at any object, the object's own id, and `/beta`, as the real azuread sends them."""
    annotation = {"@odata.type": "#microsoft.graph.application"}
    body = {**annotation, "displayName": "a", "web": {**annotation, "homePageUrl": "h"}}
    made = graph.post("/applications", json=body).json()
    beta = str(graph.base_url).replace("/v1.0", "/beta")

    changed = graph.patch(f"{beta}applications/{made['id']}", json={"id": made["id"], "displayName": "b"})
    found = graph.get(f"{beta}applications/{made['id']}").json()

    assert changed.status_code == httpx.codes.NO_CONTENT
    assert (found["displayName"], found["web"]) == ("b", {"homePageUrl": "h"})
    assert "/beta/$metadata" in found["@odata.context"]


def test_a_service_principal_is_found_by_its_names_and_keeps_other_names(graph: httpx.Client) -> None:
    app_id = graph.post("/applications", json={"displayName": "a"}).json()["appId"]
    made = graph.post("/servicePrincipals", json={"appId": app_id, "alternativeNames": ["mine"]}).json()

    for expression in (f"servicePrincipalNames/any(c:c eq '{app_id}')", "alternativeNames/any(x:x eq 'mine')"):
        found = graph.get("/servicePrincipals", params={"$filter": expression}).json()["value"]
        assert [each["id"] for each in found] == [made["id"]]
    assert made["appOwnerOrganizationId"] == LOCAL_TENANT_ID


def test_a_list_comes_in_pages_with_a_count(graph: httpx.Client) -> None:
    for number in range(5):
        graph.post("/applications", json={"displayName": f"page-{number}"}).raise_for_status()
    query = {"$filter": "startswith(displayName,'page-')", "$top": "2", "$count": "true", "$select": "displayName"}

    page = graph.get("/applications", params=query).json()
    names = [each["displayName"] for each in page["value"]]
    assert (page["@odata.count"], len(names)) == (5, 2)
    while link := page.get("@odata.nextLink"):
        page = graph.get(link).json()
        names += [each["displayName"] for each in page["value"]]

    assert sorted(names) == [f"page-{number}" for number in range(5)]
    assert code(graph.get("/applications", params={"$top": "some"})) == (400, "BadRequest")


def test_display_names_are_searched(graph: httpx.Client) -> None:
    for name in ("idstack-hc1-disk", "idstack-hc1-file", "another"):
        graph.post("/applications", json={"displayName": name}).raise_for_status()
    eventually = {"ConsistencyLevel": "eventual"}

    found = graph.get("/applications", params={"$search": '"displayName:HC1"'}, headers=eventually).json()["value"]
    refused = graph.get("/applications", params={"$search": "hc1"}, headers=eventually)

    assert {each["displayName"] for each in found} == {"idstack-hc1-disk", "idstack-hc1-file"}
    assert code(refused) == (400, "Request_UnsupportedQuery")


def test_objects_of_any_kind_are_found_by_their_ids(graph: httpx.Client, azure: LocalAzure) -> None:
    application = graph.post("/applications", json={"displayName": "a"}).json()
    principal = graph.post("/servicePrincipals", json={"appId": application["appId"]}).json()
    user = azure.people.create_user("someone@example.com", "Someone")
    ids = [application["id"], principal["id"], user.object_id, str(uuid.uuid4())]

    every = graph.post("/directoryObjects/getByIds", json={"ids": ids}).json()["value"]
    users = graph.post("/directoryObjects/getByIds", json={"ids": ids, "types": ["user"]}).json()["value"]

    assert [each["id"] for each in every] == ids[:3]
    assert [each["userPrincipalName"] for each in users] == ["someone@example.com"]


def test_a_user_reads_their_own_account(azure: LocalAzure, serve: Serve, certificates: Certificates) -> None:
    user = azure.people.create_user("someone@example.com", "Someone")
    bearer = azure.tokens.issue_for_user(user, AKS_CLIENT_APP_ID, GRAPH)
    trusting = ssl.create_default_context(cafile=certificates.ca_file)

    with httpx.Client(verify=trusting, headers={"Authorization": f"Bearer {bearer}"}) as http:
        found = http.get(f"{serve(app(azure))}/v1.0/me").json()

    assert (found["id"], found["displayName"]) == (user.object_id, "Someone")
