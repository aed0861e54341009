"""How long a local cloud takes from nothing until every service answers."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.figures import Figure, Limit
from bench.measure import in_turn
from tests.harness import LocalStack, empty_project

_ROUNDS: Final = 3
# Three seconds on a machine without other work, where the bare server takes a tenth of one.
_MOST: Final = 30.0
# The same server as the local cloud's, with an application of one line.
_BARE: Final = """\
import sys, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body"})
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", lifespan="off")
"""


def start() -> Figure:
    """Seconds of `localcloud start` with the local stack's seed, against a bare server's until its port answers."""
    ours, bare = in_turn(_ROUNDS, _local_cloud, _bare_server)
    return Figure(
        name="start of a local cloud",
        unit="s",
        ours=min(ours),
        peer=min(bare),
        peer_name="a bare uvicorn until it answers",
        limit=Limit("at most", _MOST),
        note=f"the best of {_ROUNDS}, in turn; daemon, kubelet and the seed",
    )


def _local_cloud() -> float:
    with TemporaryDirectory(prefix="bench-") as directory:
        stack: LocalStack = empty_project(Path(directory))
        begun = time.monotonic()
        try:
            stack.local_cloud("start")
            return time.monotonic() - begun
        finally:
            stack.local_cloud("stop", "--remove")


def _bare_server() -> float:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    begun = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", _BARE, str(port)]) as process:
        try:
            while True:
                try:
                    with socket.create_connection(("127.0.0.1", port)):
                        return time.monotonic() - begun
                except ConnectionRefusedError:
                    time.sleep(0.01)
        finally:
            process.kill()
