"""AKS's token webhook: whose tokens it judges, and where the groups of somebody with too many come from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from localcloud.azure.aks_webhooks import api as aks_webhooks
from localcloud.azure.graph.api import app as graph
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.objects import User
from localcloud.azure.tenant.tokens import InvalidTokenError
from localcloud.testing.azure import ask

AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
CLIENT = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
GRAPH = "https://graph.microsoft.com"
LIMIT = 200


def post(app: Starlette, path: str, body: object, token: str | None = None) -> httpx.Response:
    return ask(app, "https://service", "POST", path, token=token, json=body)


Review = Callable[[str], dict[str, Any]]


@pytest.fixture
def review(azure: LocalAzure) -> Review:
    """What the webhook answers about a token."""
    app = aks_webhooks.app(azure)

    def ask(token: str) -> dict[str, Any]:
        answer = post(app, aks_webhooks.TOKENS, {"kind": "TokenReview", "spec": {"token": token}})
        assert answer.status_code == 200
        document = answer.json()
        assert (document["apiVersion"], document["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
        return dict(document["status"])

    return ask


@pytest.fixture
def ada(azure: LocalAzure) -> User:
    return azure.people.create_user("ada@idstack.local", "Ada")


def groups(azure: LocalAzure, object_id: str, number: int) -> set[str]:
    with azure.store.transaction():
        return {azure.people.create_group(f"g{index}", [object_id]) for index in range(number)}


def test_a_token_with_its_groups_is_left_to_kube_apiserver(azure: LocalAzure, ada: User, review: Review) -> None:
    principal = azure.directory.create_service_principal(azure.directory.create_application("pipeline").app_id)
    groups(azure, ada.object_id, LIMIT)

    for token in (azure.tokens.issue_for_user(ada, CLIENT, AKS), azure.tokens.issue(principal, AKS)):
        assert review(token) == {
            "authenticated": False,
            "error": "the token contains its groups, so kube-apiserver verifies it alone",
        }


def test_an_expired_token_or_one_for_another_service_is_not_authenticated(
    azure: LocalAzure, ada: User, review: Review
) -> None:
    for token, expected in (
        (azure.tokens.issue_for_user(ada, CLIENT, GRAPH), "wrong audience"),
        (azure.tokens.issue_for_user(ada, CLIENT, AKS, lifetime=timedelta(seconds=-1)), "earlier than the current"),
        ("nonsense", "could not be verified"),
        ("", "could not be verified"),
    ):
        status = review(token)
        assert status.keys() == {"authenticated", "error"}
        assert not status["authenticated"]
        assert expected in status["error"]


def test_the_groups_of_a_person_with_too_many_come_from_graph(azure: LocalAzure, ada: User, review: Review) -> None:
    mine = groups(azure, ada.object_id, LIMIT + 1)
    groups(azure, "somebody-else", 1)

    status = review(azure.tokens.issue_for_user(ada, CLIENT, AKS))

    assert status["authenticated"]
    assert status["user"].keys() == {"username", "groups", "extra"}
    assert status["user"]["username"] == "ada@idstack.local"
    assert status["user"]["extra"] == {"oid": [ada.object_id]}
    assert set(status["user"]["groups"]) == mine


def test_an_application_with_too_many_groups_is_not_authenticated(azure: LocalAzure, review: Review) -> None:
    principal = azure.directory.create_service_principal(azure.directory.create_application("pipeline").app_id)
    groups(azure, principal.object_id, LIMIT + 1)

    assert review(azure.tokens.issue(principal, AKS)) == {
        "authenticated": False,
        "error": "service principal with group membership exceeding 200 is not supported",
    }


@pytest.mark.parametrize(
    ("scopes", "status"),
    [
        (["user.read"], 403),
        (["GroupMember.Read.All"], 403),
        (["User.ReadBasic.All"], 403),
        (["User.ReadBasic.All", "GroupMember.Read.All"], 200),
        (["User.Read.All", "Group.Read.All"], 200),
        (["Directory.Read.All"], 200),
    ],
)
def test_graph_serves_groups_to_callers_with_the_permission(
    azure: LocalAzure, ada: User, scopes: list[str], status: int
) -> None:
    [group] = groups(azure, ada.object_id, 1)
    token = azure.tokens.issue_for_user(ada, CLIENT, GRAPH, scopes=scopes)

    answer = post(graph(azure), f"/v1.0/users/{ada.object_id}/getMemberGroups", {"securityEnabledOnly": False}, token)

    assert answer.status_code == status
    if status == 200:
        assert answer.json()["value"] == [group]


def test_graph_has_no_groups_of_an_unknown_user(azure: LocalAzure, ada: User) -> None:
    token = azure.tokens.issue_for_user(ada, CLIENT, GRAPH, scopes=["Directory.Read.All"])
    answer = post(graph(azure), "/v1.0/users/bob@idstack.local/getMemberGroups", {}, token)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "Request_ResourceNotFound")


def test_on_behalf_of_needs_a_users_token_for_this_service(azure: LocalAzure, ada: User) -> None:
    principal = azure.directory.create_service_principal(azure.directory.create_application("pipeline").app_id)
    with pytest.raises(InvalidTokenError, match="not of a user"):
        azure.tokens.on_behalf_of(azure.tokens.issue(principal, AKS), AKS, GRAPH, ["Directory.Read.All"])
    with pytest.raises(InvalidTokenError, match="wrong audience"):
        azure.tokens.on_behalf_of(azure.tokens.issue_for_user(ada, CLIENT, GRAPH), AKS, GRAPH, ["Directory.Read.All"])
