"""Faults that are switched on and off while the local cloud runs, and the date of its answers."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.azure.shared.held import (
    SERVICES,
    Disk,
    FaultHolder,
    HeldAnswer,
    HeldDelivery,
    HeldFaults,
    HeldLag,
    HeldReplication,
)
from localcloud.azure.shared.http import json_object, service_app
from localcloud.core import clock
from localcloud.runtime import environment
from localcloud.runtime.environment import KUBERNETES
from localcloud.testing.azure import ask
from localcloud.testing.hosts import Certificates, Serve

_SINCE = datetime(2026, 1, 1, tzinfo=UTC)
_ANSWERS = st.builds(
    HeldAnswer,
    service=st.just("arm"),
    methods=st.lists(st.sampled_from(["GET", "PUT"])).map(tuple),
    path=st.text().map(re.escape),
    body=st.text().map(re.escape),
    status=st.none() | st.integers(400, 599),
    after=st.booleans(),
    retry_after=st.none() | st.integers(0, 99),
    operation=st.sampled_from(["", "PUT secret", "vault"]),
    identity=st.text(),
    probability=st.floats(0, 1),
    count=st.none() | st.integers(1, 9),
)
_DELIVERIES = st.builds(
    HeldDelivery,
    service=st.sampled_from(SERVICES),
    latency=st.floats(0, 99),
    bytes_per_second=st.none() | st.floats(0.1, 99),
    cut=st.none() | st.floats(0, 0.9),
)
_LAGS = st.builds(HeldLag, service=st.just("graph"), since=st.datetimes(timezones=st.just(UTC)))
_REPLICATION = st.builds(
    HeldReplication,
    since=st.datetimes(timezones=st.just(UTC)),
    client_id=st.none() | st.uuids().map(str),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "held.json"


class Recorder:
    """A service of ARM's name that remembers the bodies it has acted upon."""

    def __init__(self, file: Path | None, faults: Faults = NO_DELAYS) -> None:
        self.bodies: list[Mapping[str, Any]] = []
        routes = [Route("/{path:path}", self._act, methods=["GET", "PUT"])]
        self.app: Starlette = service_app("arm", routes, faults=faults, holder=FaultHolder(file))

    async def _act(self, request: Request) -> Response:
        self.bodies.append(await json_object(request))
        return JSONResponse(self.bodies[-1])

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request without a network."""
        return ask(self.app, "https://management.azure.com", method, path, **options)


@pytest.fixture
def recorder(file: Path) -> Recorder:
    return Recorder(file)


def hold(file: Path, *answers: HeldAnswer, **others: Any) -> None:
    file.write_text(HeldFaults(answers, **others).to_json())


def test_a_fault_is_held_until_its_file_is_gone(recorder: Recorder, file: Path) -> None:
    before = recorder.call("GET", "/a").status_code
    hold(file, HeldAnswer("arm", status=500, code="Broken"))
    held = recorder.call("GET", "/a")
    file.unlink()

    assert before == 200
    assert (held.status_code, held.json()["error"]["code"]) == (500, "Broken")
    assert held.headers["x-ms-request-id"]
    assert recorder.call("GET", "/a").status_code == 200


@pytest.mark.parametrize(
    "other",
    [
        {"service": "graph"},
        {"methods": ("GET", "DELETE")},
        {"path": "/vaults/other/"},
        {"body": "keyCredentials"},
    ],
)
def test_a_fault_meets_no_other_request(recorder: Recorder, file: Path, other: dict[str, Any]) -> None:
    exact = HeldAnswer("arm", ("PUT",), "/vaults/[^/]+/secrets/hc1$", "one")
    request = ("PUT", "/Vaults/kv/secrets/hc1")
    hold(file, exact)
    met = recorder.call(*request, json={"a": "one"}).status_code
    hold(file, replace(exact, **other))

    assert met == 503
    assert recorder.call(*request, json={"a": "one"}).json() == {"a": "one"}
    assert recorder.bodies == [{"a": "one"}]


def test_a_request_whose_answer_is_lost_has_taken_effect(recorder: Recorder, file: Path) -> None:
    hold(file, HeldAnswer("arm", body="one", status=504, after=True))

    assert recorder.call("PUT", "/a", json={"a": "one"}).status_code == 504
    assert recorder.bodies == [{"a": "one"}]


@pytest.mark.parametrize("after", [False, True])
def test_a_dropped_request_gets_no_answer(file: Path, serve: Serve, certificates: Certificates, after: bool) -> None:
    recorder = Recorder(file)
    url = serve(recorder.app)
    hold(file, HeldAnswer("arm", ("PUT",), status=None, after=after))

    with httpx.Client(base_url=url, verify=ssl.create_default_context(cafile=certificates.ca_file)) as client:
        with pytest.raises(httpx.TransportError):
            client.put("/a", json={})
        assert client.get("/a").status_code == 200
    assert len(recorder.bodies) == 1 + after


@pytest.mark.parametrize(
    ("held", "seconds"), [({}, 0), ({"arm": 86400.0}, 86400), ({"arm": -600.0}, -600), ({"graph": 9.0}, 0)]
)
def test_the_date_of_an_answer_can_be_shifted(file: Path, held: dict[str, float], seconds: int) -> None:
    hold(file, date_shift=held)
    answer = Recorder(file, NO_DELAYS).call("GET", "/a")

    [date] = answer.headers.get_list("date")
    assert parsedate_to_datetime(date) - clock.now() - timedelta(seconds=seconds) < timedelta(minutes=1)
    assert clock.now() + timedelta(seconds=seconds) - parsedate_to_datetime(date) < timedelta(minutes=1)


@pytest.mark.parametrize("text", ["[]", '{"answer": []}', '{"answers": [{}]}', '{"answers": [], "replication": [{}]}'])
def test_a_file_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="held faults: "):
        HeldFaults.parse(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("answers: [{service: arm, operation: PUT token}]", "not an operation of arm; accepted: vault, secret"),
        ("answers: [{service: imds, operation: secret}]", "not an operation of imds; accepted: token"),
        ("answers: [{service: arm, probability: 2}]", "answers[0].probability"),
        ("answers: [{service: arm, count: 0}]", "answers[0].count"),
        ("deliveries: [{service: arm, cut: 1}]", "deliveries[0].cut"),
        ("disk: broken", "disk"),
        ("expired_tls: [dns]", "expired_tls[0]"),
        ("answers: [", "while parsing"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_by_its_place(text: str, place: str) -> None:
    with pytest.raises(ValueError, match=re.escape(place)):
        HeldFaults.parse(text)


def test_yaml_says_the_same_as_json() -> None:
    text = """
    answers:
      - {service: arm, operation: PUT secret, status: 429, retry_after: 3, count: 2}
    replication:
      - since: 2026-01-01T00:00:00Z
    disk: full
    """
    held = HeldFaults.parse(text)

    assert held == HeldFaults.parse(held.to_json())
    assert held.answers == (HeldAnswer("arm", operation="PUT secret", status=429, retry_after=3, count=2),)
    assert (held.replication, held.disk) == ((HeldReplication(_SINCE),), Disk.FULL)


def test_a_file_that_is_cut_short_is_said_by_every_answer(recorder: Recorder, file: Path) -> None:
    file.write_text('{"answers": [{"service": "arm"')

    answer = recorder.call("GET", "/a")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "InternalServerError")
    assert answer.json()["error"]["message"].startswith("held faults: ")


def test_every_service_of_azure_can_be_held() -> None:
    assert {*SERVICES, KUBERNETES} == set(environment.SERVICES)


@given(
    st.builds(
        HeldFaults,
        st.lists(_ANSWERS).map(tuple),
        st.lists(_REPLICATION).map(tuple),
        deliveries=st.lists(_DELIVERIES).map(tuple),
        replica_delays=st.lists(st.floats(0, 3600)).map(tuple),
        lags=st.lists(_LAGS).map(tuple),
        token_lifetime=st.none() | st.tuples(st.integers(1, 9), st.integers(9, 99)),
        expired_tls=st.lists(st.sampled_from(SERVICES)).map(tuple),
        disk=st.none() | st.sampled_from(Disk),
    )
)
def test_what_is_written_is_read(held: HeldFaults) -> None:
    assert HeldFaults.parse(held.to_json()) == held


def test_reads_of_graph_alone_lag() -> None:
    with pytest.raises(ValueError, match="reads of graph lag, not those of arm"):
        HeldLag("arm", since=_SINCE)


@pytest.mark.parametrize(
    ("client_id", "registered", "accepted"),
    [
        ("abc", _SINCE, True),
        ("abc", _SINCE + timedelta(seconds=1), False),
        ("ABC", _SINCE + timedelta(seconds=1), False),
        ("other", _SINCE + timedelta(seconds=1), True),
    ],
)
def test_held_replication_is_about_what_is_registered_after_it(
    client_id: str, registered: datetime, accepted: bool
) -> None:
    assert HeldFaults(replication=(HeldReplication(_SINCE, "abc"),)).accepts(client_id, registered) is accepted
    assert HeldFaults(replication=(HeldReplication(_SINCE),)).accepts(client_id, registered) is (registered <= _SINCE)
