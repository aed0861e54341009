"""Graph's limits of identity and access, at the figures and costs that Microsoft publishes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azure.core import PipelineClient
from azure.core.pipeline.policies import RetryPolicy
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest, HttpResponse
from starlette.requests import Request

from localcloud.azure.graph.api import app
from localcloud.azure.graph.permissions import WRITE_ALL, GraphThrottle, is_write, units
from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.azure.shared.refusals import ServiceError
from localcloud.azure.tenant.tokens import Caller
from localcloud.testing.hosts import Certificates, Serve
from tests.azure.graph.world import GRAPH, signed_in
from tests.coverage.cloud import CoverageCloud
from tests.standing_clock import StandingClock, standing

__all__ = ["standing"]
pytestmark = pytest.mark.usefixtures("standing")
_ME = Caller("tenant", "application", "object", frozenset(), frozenset())
_OTHER = replace(_ME, client_id="another")


def request(method: str, path: str = "/v1.0/applications/1", query: str = "") -> Request:
    return Request(
        {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": [], "server": None}
    )


def narrow(tmp_path: Path, **limits: tuple[float, float]) -> CoverageCloud:
    return CoverageCloud(tmp_path, replace(NO_DELAYS, graph_requests=limits))


@pytest.fixture
def writes_one(tmp_path: Path) -> Iterator[CoverageCloud]:
    """A Graph that takes one write of an application at once and one more every ten seconds."""
    built = narrow(tmp_path, write=(1, 0.1))
    yield built
    built.store.close()


@pytest.mark.parametrize(
    ("method", "path", "query", "cost"),
    [
        ("GET", "/v1.0/applications", "", 2),
        ("GET", "/v1.0/applications", "$select=id", 1),
        ("GET", "/v1.0/applications", "$top=5", 1),
        ("GET", "/v1.0/applications", "$top=20", 2),
        ("GET", "/v1.0/applications", "$expand=owners", 3),
        ("GET", "/v1.0/applications", "$top=5&$select=id", 1),
        ("GET", "/v1.0/applications/1", "", 1),
        ("GET", "/v1.0/servicePrincipals", "", 1),
        ("POST", "/v1.0/applications", "", 1),
        ("POST", "/v1.0/directoryObjects/getByIds", "", 3),
        ("POST", "/v1.0/users/1/getMemberGroups", "", 2),
    ],
)
def test_a_request_costs_what_graphs_table_says(method: str, path: str, query: str, cost: int) -> None:
    assert units(request(method, path, query)) == cost


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/v1.0/applications", False),
        ("POST", "/v1.0/directoryObjects/getByIds", False),
        ("POST", "/v1.0/users/1/getMemberGroups", False),
        ("POST", "/v1.0/applications", True),
        ("PATCH", "/v1.0/applications/1", True),
        ("DELETE", "/v1.0/applications/1", True),
    ],
)
def test_what_changes_nothing_is_no_write(method: str, path: str, expected: bool) -> None:
    assert is_write(request(method, path)) is expected


@pytest.mark.parametrize(
    ("method", "most", "seconds", "scope"),
    [
        ("GET", 3500, 10, "Tenant_Application/ReadWrite/application/tenant ResourceUnitLimitExceeded"),
        ("DELETE", 3000, 150, "Tenant_Application/Write/application/tenant WriteLimitExceeded"),
    ],
)
def test_the_limits_are_graphs_own_unless_configured(
    method: str, most: int, seconds: int, scope: str, standing: StandingClock
) -> None:
    throttle = GraphThrottle(Faults().graph_requests)
    for _ in range(most):
        throttle.take(_ME, request(method))
    with pytest.raises(ServiceError, match="429 TooManyRequests") as refused:
        throttle.take(_ME, request(method))

    headers = refused.value.headers
    assert f"{headers['x-ms-throttle-scope']} {headers['x-ms-throttle-information']}" == scope
    throttle.take(_OTHER, request(method))
    standing.advance(seconds)
    for _ in range(most):
        throttle.take(_ME, request(method))


def test_all_applications_of_a_tenant_share_its_writes() -> None:
    throttle = GraphThrottle({"tenant_write": (2, 0.1)})
    throttle.take(_ME, request("DELETE"))
    throttle.take(_OTHER, request("DELETE"))
    for caller in (_ME, _OTHER):
        with pytest.raises(ServiceError) as refused:
            throttle.take(caller, request("DELETE"))
        assert refused.value.headers["x-ms-throttle-scope"] == f"Tenant/Write/{caller.client_id}/tenant"
    throttle.take(_ME, request("GET"))


def test_the_tenants_limit_is_six_times_that_of_an_application() -> None:
    limits = Faults().graph_requests
    assert (limits["tenant_write"], 18000 / limits["tenant_write"][1]) == ((18000, 60), 300)


def test_a_throttled_request_counts_for_no_limit(standing: StandingClock) -> None:
    throttle = GraphThrottle({"unit": (10, 1), "write": (1, 1)})
    throttle.take(_ME, request("DELETE"))
    for _ in range(20):
        with pytest.raises(ServiceError):
            throttle.take(_ME, request("DELETE"))
    for _ in range(9):
        throttle.take(_ME, request("GET"))
    standing.advance(1)
    throttle.take(_ME, request("DELETE"))


def test_too_many_writes_are_refused_with_a_retry_after(writes_one: CoverageCloud, standing: StandingClock) -> None:
    def create() -> Any:
        return writes_one.graph("POST", "/applications", {"displayName": "app"})

    assert create().status_code == 201
    refused = create()
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "TooManyRequests")
    assert refused.headers["Retry-After"] == "10"
    assert writes_one.graph("GET", "/applications").status_code == 200, "reads are not writes"
    standing.advance(10)
    assert create().status_code == 201


def test_who_is_not_authenticated_is_not_counted(tmp_path: Path) -> None:
    cloud = narrow(tmp_path, unit=(2, 0.1))
    for _ in range(3):
        assert cloud.graph("GET", "/applications", anonymous=True).status_code == 401
    assert cloud.graph("GET", "/applications").status_code == 200
    cloud.store.close()


def test_azures_pipeline_waits_as_long_as_graph_says(
    writes_one: CoverageCloud,
    serve: Serve,
    certificates: Certificates,
    standing: StandingClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, waits = writes_one, standing.pauses(monkeypatch)
    made = [world.graph("POST", "/applications", {"displayName": "app"}).json()["id"]]
    standing.advance(10)
    made += [world.graph("POST", "/applications", {"displayName": "app"}).json()["id"]]
    # Another application counts again: one DELETE is taken at once.
    headers = {"Authorization": f"Bearer {world.cloud.tokens.issue(signed_in(world.cloud, WRITE_ALL), GRAPH)}"}
    transport = RequestsTransport(connection_verify=str(certificates.ca_file), use_env_settings=False)
    url, policies = serve(app(world.cloud)), [RetryPolicy[HttpRequest, HttpResponse]()]
    with PipelineClient[HttpRequest, HttpResponse](url, policies=policies, transport=transport) as client:
        answers = [
            client.send_request(
                HttpRequest(method, f"{url}/v1.0/applications/{object_id}", headers=headers)
            ).status_code
            for method in ("DELETE", "GET")
            for object_id in made
        ]
    assert answers == [204, 204, 404, 404]
    assert waits == [10.0]
