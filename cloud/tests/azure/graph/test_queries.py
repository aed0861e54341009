"""Graph's query options: what they answer, and that none is ignored."""

from __future__ import annotations

import httpx
import pytest

from tests.azure.graph.world import code, created, values

EVENTUAL = {"ConsistencyLevel": "eventual"}


def test_owners_are_expanded_in_lists_and_objects(graph: httpx.Client) -> None:
    made = created(graph)
    [owner] = values(graph.get(f"/applications/{made['id']}/owners"))
    query = {"$expand": "owners", "$select": "id, displayName"}
    [listed] = [
        application
        for application in graph.get("/applications", params=query).json()["value"]
        if application["id"] == made["id"]
    ]
    single = graph.get(f"/applications/{made['id']}", params=query).json()

    for found in (listed, single):
        assert [expanded["id"] for expanded in found["owners"]] == [owner]
        assert found["displayName"] == "app"
    assert code(graph.get("/applications", params={"$expand": "owners($select=id)"}))[0] == 501


def test_a_list_is_ordered_and_counted(graph: httpx.Client) -> None:
    for name in ("B", "c", "a"):
        created(graph, name)
    ours = {"$filter": "displayName in ('a','B','c')"}

    assert values(graph.get("/applications", params={**ours, "$orderby": "displayName desc"}), "displayName") == [
        *("c", "B", "a")
    ]
    counted = graph.get("/applications/$count", params=ours, headers=EVENTUAL)
    assert (counted.text, counted.headers["content-type"]) == ("3", "text/plain; charset=utf-8")
    assert code(graph.get("/applications", params={"$orderby": "notes"})) == (501, "NotEmulated")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("displayName  eq  'one'", ["one"]),
        ("displayName eq 'one' or displayName eq 'two'", ["one", "two"]),
        ("displayName in ('one', 'three')", ["one"]),
        ("(displayName eq 'one' or displayName eq 'two') and startswith(displayName, 't')", ["two"]),
    ],
)
def test_a_filter_is_read_as_odata_has_it(graph: httpx.Client, text: str, names: list[str]) -> None:
    for name in ("one", "two"):
        created(graph, name)

    assert sorted(values(graph.get("/applications", params={"$filter": text}), "displayName")) == names


def test_advanced_queries_need_the_header_and_the_count(graph: httpx.Client) -> None:
    created(graph, "one")
    query = {"$filter": "endsWith(displayName, 'ne') and displayName ne 'two'", "$count": "true"}

    assert code(graph.get("/applications", params=query)) == (400, "Request_UnsupportedQuery")
    assert values(graph.get("/applications", params=query, headers=EVENTUAL), "displayName") == ["one"]


def test_a_property_that_is_not_there_is_not_selected_in_silence(graph: httpx.Client) -> None:
    assert code(graph.get("/applications", params={"$select": "id,colour"}))[0] == 501


def test_an_id_is_found_in_any_letter_case(graph: httpx.Client) -> None:
    made = created(graph)

    assert graph.get(f"/applications/{made['id'].upper()}").json()["id"] == made["id"]
    assert graph.get(f"/applications(appId='{made['appId'].upper()}')").json()["id"] == made["id"]
    assert graph.patch(f"/applications/{made['id'].upper()}", json={"id": made["id"].upper()}).status_code == 204


def test_what_graph_has_and_the_local_cloud_not_is_named(graph: httpx.Client) -> None:
    refused = graph.post("/applications", json={"displayName": "app", "addIns": []})

    assert code(refused) == (501, "NotEmulated")
    assert "addIns" in refused.text
