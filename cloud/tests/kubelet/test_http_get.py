"""The kubelet's GET: what is sent, and which answer is a status."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.kubelet.http_get import HttpGet, HttpGetter, NoAnswerError
from localcloud.testing.hosts import Certificates

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
