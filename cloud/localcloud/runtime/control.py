"""The daemon's own service, beside Azure's: `POST /seed` creates what the seed has and is missing.

`start` and `seed` ask the daemon, which has imported the whole local cloud already; that would take them a second.
"""

from __future__ import annotations

from contextlib import closing

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from localcloud.core.state_directory import StateDirectory
from localcloud.core.store_errors import StoreError
from localcloud.runtime.environment import prepare
from localcloud.runtime.seed import seed


def app(state: StateDirectory) -> Starlette:
    """The service. An answer is `{"added": <number of resources>}`, or the reason of a failure as text.

    A request has no content, so it takes no token: its sender changes nothing that a start would not change.
    """

    async def create(_: Request) -> Response:
        try:
            # Since the daemon's own start, another seed may have been chosen, or files be gone.
            with closing(prepare(state)) as prepared:
                added = seed(prepared)
        except StoreError as error:
            return PlainTextResponse(str(error), error.status)
        return JSONResponse({"added": added})

    return Starlette(routes=[Route("/seed", create, methods=["POST"])])
