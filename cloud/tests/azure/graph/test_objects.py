"""Graph: duplicates, owners, filters, pages, soft delete."""

from __future__ import annotations

import ssl
import uuid
from typing import Any

import httpx
import pytest

from localcloud.azure.graph.api import app
from localcloud.azure.graph.permissions import WRITE_ALL, WRITE_OWNED
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core.clouds import AKS_CLIENT_APP_ID, LOCAL_TENANT_ID
from localcloud.testing.hosts import Certificates, Serve
from tests.azure.graph.world import GRAPH, As, code, created, key, signed_in, values

EVENTUAL = {"ConsistencyLevel": "eventual"}
ONE = "it's one"


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"$filter": "displayName  eq  'two'"}, ["two", "two"]),
        ({"$filter": "displayName eq 'it''s one' or displayName eq 'two'"}, [ONE, "two", "two"]),
        ({"$filter": "displayName in ('It''s One', 'three')"}, [ONE]),
        ({"$filter": "(displayName eq 'x' or displayName eq 'two') and startswith(displayName, 't')"}, ["two", "two"]),
        ({"$filter": "startswith(displayName,'it''s')"}, [ONE]),
        ({"$filter": "tags/any(t:t eq 'hc1')"}, [ONE]),
        ({"$filter": "tags/any(t:t eq 'hc1') and displayName eq 'It''s One'"}, [ONE]),
        ({"$filter": "web/redirectUris/any(p:p eq 'https://hc1.example.com/back')"}, [ONE]),
        ({"$filter": "web/redirectUris/any(p:startswith(p, 'https://hc1.'))"}, [ONE]),
        ({"$filter": "endsWith(displayName, 'ne') and displayName ne 'two'", "$count": "true"}, [ONE]),
        ({"$filter": "displayName in ('it''s one','two')", "$orderby": "displayName desc"}, ["two", "two", ONE]),
        ({"$search": '"displayName:ONE"'}, [ONE]),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_a_query_finds_what_odata_says(graph: httpx.Client, options: dict[str, str], names: list[str]) -> None:
    created(graph, ONE, tags=["hc1"], web={"redirectUris": ["https://hc1.example.com/back"]})
    for _ in range(2):
        created(graph, "two", tags=["hc2"])
    headers = EVENTUAL if {"$count", "$search"} & options.keys() else {}

    found = values(graph.get("/applications", params=options, headers=headers), "displayName")

    assert (found if "$orderby" in options else sorted(found)) == names


@pytest.mark.parametrize(
    ("options", "headers", "refused"),
    [
        ({"$filter": "notes eq 'x'"}, {}, (400, "Request_UnsupportedQuery")),
        ({"$filter": "displayName ne 'two'", "$count": "true"}, {}, (400, "Request_UnsupportedQuery")),
        ({"$search": "hc1"}, EVENTUAL, (400, "Request_UnsupportedQuery")),
        ({"$top": "some"}, {}, (400, "BadRequest")),
        ({"$orderby": "notes"}, {}, (501, "NotEmulated")),
        ({"$expand": "owners($select=id)"}, {}, (501, "NotEmulated")),
    ],
    ids=["property", "advanced", "search without its property", "top", "order", "nested"],
)
def test_an_option_of_a_query_is_not_ignored(
    graph: httpx.Client, options: dict[str, str], headers: dict[str, str], refused: tuple[int, str]
) -> None:
    assert code(graph.get("/applications", params=options, headers=headers)) == refused


def test_owners_are_expanded_in_lists_and_objects(graph: httpx.Client) -> None:
    made = created(graph)
    [owner] = values(graph.get(f"/applications/{made['id']}/owners"))
    query = {"$expand": "owners", "$select": "id, displayName"}
    listed = {found["id"]: found for found in graph.get("/applications", params=query).json()["value"]}

    for found in (listed[made["id"]], graph.get(f"/applications/{made['id']}", params=query).json()):
        assert ([expanded["id"] for expanded in found["owners"]], found["displayName"]) == ([owner], "app")


def test_a_list_comes_in_pages_with_a_count(graph: httpx.Client) -> None:
    names = [created(graph, f"page-{number}")["displayName"] for number in range(5)]
    ours = {"$filter": "startswith(displayName,'page-')"}

    page = graph.get("/applications", params={**ours, "$top": "2", "$count": "true", "$select": "displayName"}).json()
    assert page["@odata.count"] == 5
    found = [page["value"]]
    while link := page.get("@odata.nextLink"):
        page = graph.get(link).json()
        found.append(page["value"])

    assert [len(part) for part in found] == [2, 2, 1]
    assert sorted(application["displayName"] for part in found for application in part) == names
    counted = graph.get("/applications/$count", params=ours, headers=EVENTUAL)
    assert (counted.text, counted.headers["content-type"]) == ("5", "text/plain; charset=utf-8")


def test_an_id_is_found_in_any_letter_case(graph: httpx.Client) -> None:
    made = created(graph)

    assert graph.get(f"/applications/{made['id'].upper()}").json()["id"] == made["id"]
    assert graph.get(f"/applications(appId='{made['appId'].upper()}')").json()["id"] == made["id"]
    found = graph.get("/applications", params={"$filter": f"appId eq '{made['appId'].upper()}'"})
    assert values(found) == [made["id"]]
    assert graph.patch(f"/applications/{made['id'].upper()}", json={"id": made["id"].upper()}).status_code == 204


def test_what_graph_has_and_the_local_cloud_not_is_named(graph: httpx.Client) -> None:
    refused = graph.post("/applications", json={"displayName": "app", "addIns": []})

    assert code(refused) == (501, "NotEmulated")
    assert "addIns" in refused.text


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


def test_a_deleted_application_can_be_restored_or_purged(graph: httpx.Client) -> None:
    mine = created(graph, uniqueName="mine")
    principal = graph.post("/servicePrincipals", json={"appId": mine["appId"]}).json()
    assert graph.get(f"/servicePrincipals(appId='{mine['appId']}')").json()["id"] == principal["id"]
    assert graph.delete(f"/applications/{mine['id']}").status_code == 204
    assert graph.get(f"/applications/{mine['id']}").status_code == 404
    assert graph.get(f"/servicePrincipals/{principal['id']}").status_code == 404
    assert values(graph.get("/directory/deletedItems/microsoft.graph.application")) == [mine["id"]]
    assert values(graph.get("/directory/deletedItems/microsoft.graph.servicePrincipal")) == [principal["id"]]

    assert graph.post(f"/directory/deletedItems/{mine['id']}/restore").json()["appId"] == mine["appId"]
    assert graph.get(f"/applications/{mine['id']}").json()["uniqueName"] == "mine"
    assert graph.get(f"/servicePrincipals/{principal['id']}").status_code == 200

    graph.delete(f"/applications/{mine['id']}")
    again = {"displayName": "again", "uniqueName": "mine"}
    assert code(graph.post("/applications", json=again)) == (400, "Request_BadRequest")
    assert graph.delete(f"/directory/deletedItems/{mine['id']}").status_code == 204
    assert graph.post(f"/directory/deletedItems/{mine['id']}/restore").status_code == 404
    assert graph.post("/applications", json=again).status_code == 201


def test_an_identifier_taken_meanwhile_blocks_the_restore(graph: httpx.Client) -> None:
    mine = created(graph, identifierUris=["api://mine"])
    graph.delete(f"/applications/{mine['id']}")
    created(graph, identifierUris=["api://mine"])

    assert code(graph.post(f"/directory/deletedItems/{mine['id']}/restore")) == (400, "Request_BadRequest")


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


@pytest.mark.parametrize(
    "body",
    [
        {"tags": "one"},
        {"identifierUris": [7]},
        {"owners@odata.bind": 7},
        {"keyCredentials": ["one"]},
        {"keyCredentials": [key(displayName=7)]},
    ],
    ids=lambda body: next(iter(body)),
)
def test_a_value_of_another_type_is_refused_and_not_kept(graph: httpx.Client, body: dict[str, Any]) -> None:
    assert graph.post("/applications", json={"displayName": "a", **body}).status_code == 400
    assert values(graph.get("/applications", params={"$filter": "displayName eq 'a'"})) == []


def test_a_property_of_beta_alone_is_null_there_and_unknown_elsewhere(graph: httpx.Client) -> None:
    made = graph.post("applications", json={"displayName": "a"}).json()
    path, query = f"applications/{made['id']}", {"$select": "id,samlMetadataUrl"}

    beta = graph.get(str(graph.base_url).replace("/v1.0", "/beta") + path, params=query)

    assert (beta.status_code, beta.json()["samlMetadataUrl"]) == (200, None)
    assert graph.get(path, params=query).status_code == 501


def test_a_service_principal_is_found_by_its_names_and_keeps_other_names(graph: httpx.Client) -> None:
    app_id = graph.post("/applications", json={"displayName": "a"}).json()["appId"]
    made = graph.post("/servicePrincipals", json={"appId": app_id, "alternativeNames": ["mine"]}).json()

    for expression in (f"servicePrincipalNames/any(c:c eq '{app_id}')", "alternativeNames/any(x:x eq 'mine')"):
        found = graph.get("/servicePrincipals", params={"$filter": expression}).json()["value"]
        assert [principal["id"] for principal in found] == [made["id"]]
    assert (made["appOwnerOrganizationId"], made["servicePrincipalType"]) == (LOCAL_TENANT_ID, "Application")


def test_objects_of_any_kind_are_found_by_their_ids(graph: httpx.Client, azure: LocalAzure) -> None:
    application = graph.post("/applications", json={"displayName": "a"}).json()
    principal = graph.post("/servicePrincipals", json={"appId": application["appId"]}).json()
    user = azure.people.create_user("someone@example.com", "Someone")
    ids = [application["id"], principal["id"], user.object_id, str(uuid.uuid4())]

    every = graph.post("/directoryObjects/getByIds", json={"ids": ids}).json()["value"]
    users = graph.post("/directoryObjects/getByIds", json={"ids": ids, "types": ["user"]}).json()["value"]

    assert [directory_object["id"] for directory_object in every] == ids[:3]
    assert [person["userPrincipalName"] for person in users] == ["someone@example.com"]


def test_a_user_reads_their_own_account(azure: LocalAzure, serve: Serve, certificates: Certificates) -> None:
    user = azure.people.create_user("someone@example.com", "Someone")
    bearer = azure.tokens.issue_for_user(user, AKS_CLIENT_APP_ID, GRAPH)
    trusting = ssl.create_default_context(cafile=certificates.ca_file)

    with httpx.Client(verify=trusting, headers={"Authorization": f"Bearer {bearer}"}) as http:
        found = http.get(f"{serve(app(azure))}/v1.0/me").json()

    assert (found["id"], found["displayName"]) == (user.object_id, "Someone")
