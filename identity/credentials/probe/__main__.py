"""`python -m identity.credentials.probe`: proves a mounted credential, once or until it is ended."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NoReturn

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.credentials.probe.credential_source import CredentialSource
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.prober import Prober
from identity.credentials.probe.report import ProofRequest


class JsonLines(logging.Formatter):
    """One JSON object a line; a record's `fields` (from `extra`) are laid beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON text."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up() -> None:
    """Send this package's records from INFO on, and warnings of every library, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("identity.credentials").setLevel(logging.INFO)
    # azure-identity warns of each failed sign-in, which the probe reports itself, once.
    logging.getLogger("azure.identity").setLevel(logging.ERROR)


def app(prober: Prober, metrics: Metrics, is_alive: Callable[[], bool]) -> Starlette:
    """`/healthz`: the loop runs (`is_alive`) and the credential file is watched, or the reason why not. `/readyz`: the
    credential works; the report either way. `/metrics`. 200 or 503.
    """

    async def healthz(_: Request) -> Response:
        reason = None
        if not is_alive():
            reason = "the thread that proves the credential has ended"
        elif unwatched := prober.unwatched:
            reason = f"the thread that watches {unwatched} has ended: later credentials are not seen"
        return JSONResponse({"alive": reason is None, "reason": reason}, 503 if reason else 200)

    async def readyz(_: Request) -> Response:
        report = prober.to_json()
        return JSONResponse(report, 200 if report["ready"] else 503)

    async def scrape(_: Request) -> Response:
        return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", scrape)])


_LOG: Final = logging.getLogger("identity.credentials.probe")

_PROGRAM: Final = "python -m identity.credentials.probe"
# How long the current round may take to end; a pod is killed 30 s after it was asked to end.
_GRACE_SECONDS: Final = 5
_LONGEST_INTERVAL: Final = 86_400
_LAST_PORT: Final = 65_535


def start(program: str) -> NoReturn:
    """Run the probe as a process of its own, as `main`, with its log on standard error."""
    set_up()
    sys.exit(main(program=program))


def main(arguments: Sequence[str] | None = None, *, program: str = _PROGRAM) -> int:
    """Run the probe; returns the exit code: 0 ended or ready, 1 not ready or the address is taken (2: wrong usage).

    `program` is its name in the usage.
    """
    parser = _parser(program)
    options = parser.parse_args(arguments)
    try:
        source = CredentialSource.parse(options.credential, options.mount_root)
    except ValueError as error:
        parser.error(f"--credential: {error}")
    try:
        call = None if options.proof is None else ProofRequest.parse(options.proof)
    except ValueError as error:
        parser.error(f"--proof: {error}")
    if call is None and not options.once:
        parser.error("--proof is required without --once")
    metrics = Metrics()
    prober = Prober(source, call, metrics)
    try:
        if options.once:
            report = prober.prove()
            print(json.dumps(prober.to_json(), indent=2))
            return 0 if report.is_ready else 1
        return _serve(prober, metrics, options.listen, timedelta(seconds=options.interval))
    finally:
        prober.close()


def _serve(prober: Prober, metrics: Metrics, address: tuple[str, int], interval: timedelta) -> int:
    try:
        listener = socket.create_server(address, family=socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    except OSError as error:
        _LOG.error("cannot listen on %s:%d (%s); give another --listen", *address, error.strerror)
        return 1
    # uvicorn ends on SIGTERM and SIGINT, then raises the signal again for the earlier handler, which must not end us.
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: None)
    loop = threading.Thread(target=prober.run, args=(interval,), name="prober", daemon=True)
    config = uvicorn.Config(app(prober, metrics, loop.is_alive), log_config=None, access_log=False, lifespan="off")
    loop.start()
    host, port = listener.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    _LOG.info("listening", extra={"fields": {"address": f"{host}:{port}"}})
    uvicorn.Server(config).run(sockets=[listener])
    prober.stop()
    loop.join(_GRACE_SECONDS)
    _LOG.info("ended")
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(program, description="Prove a mounted credential, once or until it is ended.")
    parser.add_argument(
        "--credential",
        required=True,
        metavar="file:PATH|env:NAME|cloud-config:PATH|token:PATH",
        help="where the consumer looks; a service account's token comes with AZURE_AUTHORITY_HOST, AZURE_TENANT_ID and "
        "AZURE_CLIENT_ID",
    )
    parser.add_argument(
        "--proof",
        metavar="JSON",
        help='{"method", "url", "scope", "action"?, "headers"?, "body"?}; with --once it may be left out',
    )
    parser.add_argument("--listen", type=_address, default=("", 8080), metavar="HOST:PORT", help="default: :8080")
    parser.add_argument(
        "--mount-root",
        type=Path,
        default=os.environ.get("PROBE_MOUNT_ROOT"),
        metavar="DIR",
        help="put before absolute paths, for processes without a mount namespace (default: $PROBE_MOUNT_ROOT)",
    )
    parser.add_argument("--interval", type=_seconds, default=60, metavar="SECONDS", help="between proofs (default: 60)")
    parser.add_argument("--once", action="store_true", help="prove once, print the report, exit 0 or 1")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not re.fullmatch("[0-9]{1,5}", port) or int(port) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"found {text!r}; accepted: HOST:PORT, such as :8080")
    return host.strip("[]"), int(port)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < (seconds := float(text)) <= _LONGEST_INTERVAL:
            return seconds
    raise argparse.ArgumentTypeError(f"found {text!r}; accepted: more than 0 and at most {_LONGEST_INTERVAL} seconds")


if __name__ == "__main__":
    start(_PROGRAM)
