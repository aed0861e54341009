"""The probe's endpoints."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.prober import Prober


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
