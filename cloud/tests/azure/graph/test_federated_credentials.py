"""One federated credential of an application: read, changed, made by an upsert; what Graph refuses of them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.azure.graph.world import code, created

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
    for key in (f"/{made['id']}", f"/{made['id'].upper()}", "/ci", "(name='ci')"):
        assert TRUST.items() <= graph.get(f"{path}{key}").json().items()
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
    "changed",
    [
        {"issuer": "http://issuer.example"},
        {"issuer": "https://"},
        {"audiences": ["a", "b"]},
        {"audiences": "a"},
        {"name": "n" * 121},
        {"subject": "s" * 601},
    ],
    ids=["http", "no host", "two audiences", "a text", "long name", "long subject"],
)
def test_a_wrong_credential_is_refused(graph: httpx.Client, path: str, changed: dict[str, Any]) -> None:
    assert code(graph.post(path, json={**TRUST, **changed})) == (400, "InvalidFederatedIdentityCredentialValue")


def test_a_credential_needs_a_subject(graph: httpx.Client, path: str) -> None:
    assert code(graph.post(path, json={**TRUST, "subject": ""})) == (400, "Request_BadRequest")


def test_there_are_twenty_at_most(graph: httpx.Client, path: str) -> None:
    answers = [graph.post(path, json={**TRUST, "name": f"n{i}", "subject": str(i)}).status_code for i in range(21)]

    assert answers == [201] * 20 + [400]


def test_a_matching_expression_is_not_emulated(graph: httpx.Client, path: str) -> None:
    refused = graph.post(path, json={**TRUST, "claimsMatchingExpression": {"value": "x"}})

    assert code(refused) == (501, "NotEmulated")
