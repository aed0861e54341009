"""Readiness and liveness by HTTP: the request, when a probe succeeds or fails, and what follows."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localcloud.kubelet.client import PODS
from localcloud.kubelet.commands import Machine, expand
from localcloud.kubelet.containers import HttpProbe
from localcloud.kubelet.http_get import HttpGet, HttpGetter, NoAnswerError
from localcloud.kubelet.selection import condition, is_ready
from localcloud.kubernetes.pod_output import localiser
from localcloud.testing.hosts import Certificates, Serve
from localcloud.testing.running import ended
from tests.kubelet_world import ClusterApi, Kubelet, Object, pod

# How a container's words are made to mean this machine's paths.

TREE = Path("/tree")
local = localiser(["/mnt/certs", "/etc/kubernetes/", "/mnt"], TREE)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("/mnt/certs", "/tree/mnt/certs"),
        ("/mnt/certs/cpo-hc1-json", "/tree/mnt/certs/cpo-hc1-json"),
        ("/mnt/other", "/tree/mnt/other"),
        ("--config-file-path=/etc/kubernetes/azure.json", "--config-file-path=/tree/etc/kubernetes/azure.json"),
        ("/mnt/a:/mnt/b,/mnt/c", "/tree/mnt/a:/tree/mnt/b,/tree/mnt/c"),
        ("cat '/mnt/a' \"/mnt/b\"; ls /mnt", "cat '/tree/mnt/a' \"/tree/mnt/b\"; ls /tree/mnt"),
        ("file:///mnt/certs/tls.crt", "file:///tree/mnt/certs/tls.crt"),
    ],
)
def test_a_path_under_a_mount_is_found_wherever_it_begins(written: str, meant: str) -> None:
    assert local(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "/etc/passwd",
        "/mntx",
        "/mnt-certs/a",
        "mnt/certs",
        "/var/mnt/certs",
        "https://example.com/mnt/certs",
        "/etc/kubernetes.d/azure.json",
        "",
    ],
)
def test_what_only_looks_like_a_path_under_a_mount_stays(written: str) -> None:
    assert local(written) == written


@given(st.text())
def test_without_mounts_every_string_stays(text: str) -> None:
    assert localiser([], TREE)(text) == text


@given(st.lists(st.sampled_from(("/mnt/certs/a", " ", "=", "x", "/", "/usr", "/mnt")), max_size=8).map("".join))
def test_words_change_by_the_tree_alone(text: str) -> None:
    assert local(text).replace("/tree/", "/") == text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("$(HOST):$(PORT)", "127.64.0.1:8080"),
        ("$(NONE) $HOST ${HOST}", "$(NONE) $HOST ${HOST}"),
        ("$$(HOST) $$", "$(HOST) $"),
        ("$(HOST", "$(HOST"),
        ("$(WITH.DOT-AND_1)", "yes"),
    ],
)
def test_references_to_variables_are_expanded_as_kubernetes_does(written: str, meant: str) -> None:
    assert expand(written, {"HOST": "127.64.0.1", "PORT": "8080", "WITH.DOT-AND_1": "yes"}) == meant


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("/usr/bin/operator", "{programs}/operator"),
        ("/usr/bin/other", None),
        ("operator", None),
    ],
    ids=["one of the images'", "another", "a name that PATH leads to"],
)
def test_an_absolute_command_is_looked_for_among_the_images_programs(
    tmp_path: Path, command: str, program: str | None
) -> None:
    (tmp_path / "operator").touch()
    machine = Machine("ca.crt", "https://127.0.0.1:20000", tmp_path)

    assert machine.program(command) == (program and program.format(programs=tmp_path))
    assert Machine("ca.crt", "https://127.0.0.1:20000").program(command) is None


class ProbeAnswers:
    """A server whose answer the test decides."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[Request] = []

    async def answer(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(status_code=self.status, headers={"Location": "/elsewhere"})

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.answer)])


def results(statuses: Iterable[int], *, successes: int = 1, failures: int = 1) -> list[tuple[int, bool]]:
    """Each result of a probe that gets these answers: after how many of them it came, and whether it is a success."""
    answered = 0
    found: list[tuple[int, bool]] = []
    script = iter(statuses)

    class Scripted(HttpGetter):
        async def status(self, request: HttpGet, timeout: float) -> int:
            nonlocal answered
            status = next(script, None)
            if status is None:
                raise asyncio.CancelledError
            answered += 1
            return status

    probe = HttpProbe("http://127.64.0.1/", {}, 0, 0, 1, successes, failures)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(probe.run(Scripted(), lambda good, _: found.append((answered, good))))
    return found


def test_a_probe_reports_once_when_a_threshold_is_reached() -> None:
    assert results([200, 200, 500, 500, 500, 200, 200]) == [(1, True), (3, False), (6, True)]
    assert results([500, 500, 200, 500, 500, 500, 500], failures=3) == [(3, True), (6, False)]
    assert results([200, 500, 200, 200, 200], successes=2, failures=2) == [(4, True)]


@pytest.mark.parametrize(("status", "good"), [(200, True), (204, True), (302, True), (400, False), (503, False)])
def test_success_is_every_status_below_400(status: int, good: bool) -> None:
    assert results([status]) == [(1, good)]


def probed(url: str, probe: str) -> Object:
    """A pod with a probe that asks the test's server."""
    host, _, port = url.removeprefix("http://").partition(":")
    request = {"host": host, "port": int(port), "path": "/healthz", "httpHeaders": [{"name": "X-Probe", "value": "1"}]}
    checks = {"httpGet": request, "periodSeconds": 1, "failureThreshold": 1}
    return pod("web", spec={"restartPolicy": "Always"}, **{probe: checks})


@pytest.fixture
def _short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes run every 50 ms, for `periodSeconds` is a whole second at least, and none fails by being slow."""
    of = HttpProbe.of

    def often(pod: Object, container: Object, name: str) -> HttpProbe | None:
        probe = of(pod, container, name)
        return probe and replace(probe, period=0.05, timeout=30)

    monkeypatch.setattr(HttpProbe, "of", often)


@pytest.mark.usefixtures("_short_periods")
def test_a_pod_is_ready_as_long_as_its_probe_succeeds(
    cluster: ClusterApi, kubelet: Kubelet, serve_plain: Serve
) -> None:
    answers = ProbeAnswers()
    answers.status = 503
    cluster.create(PODS, probed(serve_plain(answers.app()), "readinessProbe"))

    def is_started(web: Object) -> bool:
        return any(container_status["started"] for container_status in web["status"].get("containerStatuses", []))

    started = cluster.once_pod("web", is_started)
    assert condition(started, "Ready")["message"] == "containers with unready status: [c]"
    answers.status = 200
    cluster.ready("web")
    answers.status = 503
    unready = cluster.once_pod("web", lambda web: not is_ready(web))

    assert unready["status"]["containerStatuses"][0]["restartCount"] == 0
    assert {(request.url.path, request.headers["X-Probe"]) for request in answers.requests} == {("/healthz", "1")}


@pytest.mark.usefixtures("_short_periods")
def test_a_container_whose_liveness_probe_fails_is_restarted(
    cluster: ClusterApi, kubelet: Kubelet, serve_plain: Serve
) -> None:
    answers = ProbeAnswers()
    cluster.run(probed(serve_plain(answers.app()), "livenessProbe"))
    (process,) = kubelet.processes()

    answers.status = 500
    cluster.event("web", "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500")

    assert ended(process)
    cluster.once_pod("web", lambda web: web["status"]["containerStatuses"][0]["restartCount"] >= 1)


def test_a_probes_port_may_be_named_and_its_host_is_the_pods() -> None:
    container = {
        "ports": [{"name": "metrics", "containerPort": 9090}, {"name": "health", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"port": "health", "scheme": "HTTPS", "path": "/readyz"}},
    }

    probe = HttpProbe.of({"status": {"podIP": "127.64.0.1"}}, container, "readinessProbe")

    assert probe == HttpProbe("https://127.64.0.1:8080/readyz", {}, 0, 10, 1, 1, 3), "Kubernetes' defaults"


Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def asked(answer: bytes | Answer, path: str = "/", *, timeout: float = 30, tls: ssl.SSLContext | None = None) -> int:
    """The status of one request to a server that reads it and then answers like this."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if isinstance(answer, bytes):
            writer.write(answer)
        else:
            await answer(writer)
        writer.close()

    async def run() -> int:
        async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
            port = server.sockets[0].getsockname()[1]
            request = HttpGet.of(f"{'https' if tls else 'http'}://127.0.0.1:{port}{path}", {})
            return await HttpGetter().status(request, timeout)

    return asyncio.run(run())


def problem(answer: bytes | Answer, *, timeout: float = 30) -> str:
    with pytest.raises(NoAnswerError) as caught:
        asked(answer, timeout=timeout)
    return str(caught.value)


def parsed(request: HttpGet) -> h11.Request:
    """The request as another implementation reads it; there is nothing after it."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(request.message)
    found = server.next_event()
    assert isinstance(found, h11.Request)
    assert isinstance(server.next_event(), h11.EndOfMessage)
    assert server.trailing_data == (b"", False)
    return found


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 Service Unavailable\r\n\r\nno",
        b"HTTP/1.0 503\r\n\r\n",
        b"HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_the_status_is_that_of_the_first_line(answer: bytes) -> None:
    assert asked(answer) == 503


def test_an_answer_may_come_in_pieces() -> None:
    async def in_pieces(writer: asyncio.StreamWriter) -> None:
        for piece in (b"HTT", b"P/1.1 20", b"4 No Content\r\n", b"\r\n"):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    assert asked(in_pieces) == 204


def test_a_body_without_an_end_is_read_for_a_while_only() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 1024)
            try:
                await writer.drain()
            except ConnectionError:
                return

    assert asked(endless) == 200


def test_an_answer_that_does_not_end_in_time_is_none() -> None:
    async def never(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        await writer.wait_closed()

    assert problem(never, timeout=0.05) == "context deadline exceeded"


def test_no_answer_has_gos_reason() -> None:
    assert problem(b"") == "EOF"
    assert problem(b"SSH-2.0-OpenSSH\r\n") == "malformed HTTP response"
    assert problem(b"HTTP/1.1 2000 OK\r\n\r\n") == "malformed HTTP response"

    async def reset(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    assert problem(reset) in {"EOF", "connection reset by peer"}
    with pytest.raises(NoAnswerError, match=r"^connection refused$"):
        asyncio.run(HttpGetter().status(HttpGet.of("http://127.0.0.1:1/", {}), 30))


def test_any_certificate_will_do(certificates: Certificates) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificates.server_file)
    assert asked(b"HTTP/1.1 200 OK\r\n\r\n", tls=server) == 200


def test_a_server_without_tls_is_not_taken_for_one() -> None:
    async def run() -> int:
        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await HttpGetter().status(HttpGet.of(f"https://127.0.0.1:{port}/", {}), 30)

    with pytest.raises(NoAnswerError, match=r"SSL|EOF|reset"):
        asyncio.run(run())


def test_the_probes_headers_come_over_the_kubelets() -> None:
    request = HttpGet.of("http://127.64.0.1:8080/healthz?full=1", {"Host": "web.example", "X-Probe": "1"})
    assert (request.host, request.port, request.is_tls) == ("127.64.0.1", 8080, False)
    found = parsed(request)
    assert (found.method, found.target) == (b"GET", b"/healthz?full=1")
    assert dict(found.headers) == {
        b"host": b"web.example",
        b"user-agent": b"kube-probe/1.35",
        b"accept": b"*/*",
        b"connection": b"close",
        b"x-probe": b"1",
    }


def test_the_port_is_the_schemes_and_an_address_may_be_ipv6() -> None:
    assert HttpGet.of("http://127.64.0.1/", {}).port == 80
    request = HttpGet.of("https://[::1]/", {})
    assert (request.host, request.port, request.is_tls) == ("::1", 443, True)
    assert dict(parsed(request).headers)[b"host"] == b"[::1]"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("X Y", "1", 'name "X Y"'),
        ("", "1", 'name ""'),
        ("X", "1\r\nY: 2", 'value for "X"'),
        ("X", "\0", 'value for "X"'),
    ],
)
def test_a_header_that_would_break_the_request_is_refused(name: str, value: str, said: str) -> None:
    with pytest.raises(NoAnswerError) as caught:
        HttpGet.of("http://127.64.0.1/", {name: value})
    assert str(caught.value) == f"net/http: invalid header field {said}"


@given(path=st.text(), header=st.text(st.characters(codec="latin-1"), max_size=8))
def test_no_path_and_no_header_makes_another_request(path: str, header: str) -> None:
    try:
        request = HttpGet.of(f"http://127.64.0.1:80/{path}", {"X-Probe": header})
    except NoAnswerError:
        return
    assert [name for name, _ in parsed(request).headers][-1] == b"x-probe"
