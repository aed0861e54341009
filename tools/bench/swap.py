"""From the swap of the CSI driver's link to the new credential's service: our loader against the upstream one."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from identity.credentials.events import Event, EventKind
from identity.credentials.token_credential import MountedCredential
from tests.msi_dataplane import SigningIn
from tests.unit.identity.credentials.world import CsiMount, Entra, certificate, document
from tools.bench.figures import Figure, Limit
from tools.bench.tokens import trusting

_SWAPS: Final = 5
# The upstream loader sees a swap when it reads the file anyway: every 6 h. Here it does 2,160 times as often.
_BACKSTOP: Final = 10.0  # seconds
# The driver's --rotation-poll-interval, seconds: by so much the swap itself may come late.
_POLL: Final = 120.0


def swap() -> Iterator[Figure]:
    """The same swaps, watched by both loaders at the same time."""
    with TemporaryDirectory(prefix="bench-") as directory:
        ours, upstream = _delays(Path(directory))
    yield Figure(
        name="link swap to service of the new credential",
        unit="s",
        ours=median(ours),
        peer=median(upstream),
        peer_name=f"msi-dataplane v0.4.3 with a backstop of {_BACKSTOP:g} s instead of 6 h",
        limit=Limit("at most", 0.25),
        note=f"median of {_SWAPS} swaps; the first sign-in with the new certificate counts",
    )
    yield Figure(
        name="link swap to service, beside the driver's poll",
        unit="s",
        ours=max(ours),
        peer=_POLL,
        peer_name="the 2 minutes that the driver takes to see a new secret",
        limit=Limit("at most", 0.02),
        note=f"the slowest of {_SWAPS} swaps",
    )


def _delays(directory: Path) -> tuple[list[float], list[float]]:
    """Seconds after each swap for our loader and for the upstream one."""
    served: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()

    def note(event: Event) -> None:
        if event.kind is EventKind.SERVED and event.credential is not None:
            served.put((time.monotonic(), event.credential.thumbprint))

    issued = [certificate(age=timedelta(minutes=5) - timedelta(seconds=second)) for second in range(_SWAPS + 1)]
    (directory / "entra").mkdir()
    mount = CsiMount(directory / "mnt")
    with Entra(directory / "entra") as entra, trusting(entra.ca_file):
        entra.registered += [credential.certificate_pem for credential in issued]
        mount.write(document(issued[0], entra.url))
        with (
            SigningIn(mount.path, str(entra.ca_file), backstop=f"{_BACKSTOP}s", pause="50ms") as upstream,
            MountedCredential(mount.path, on_event=note),
        ):
            assert upstream.next().thumbprint == issued[0].thumbprint
            assert served.get()[1] == issued[0].thumbprint
            ours, theirs = [], []
            for number, renewed in enumerate(issued[1:]):
                # The backstop ticked just now; swaps are spread evenly over its period.
                time.sleep((number + 0.5) / _SWAPS * _BACKSTOP)
                begun = time.monotonic()
                mount.write(document(renewed, entra.url))
                at, thumbprint = served.get(timeout=60)
                assert thumbprint == renewed.thumbprint
                ours.append(at - begun)
                while upstream.next().thumbprint != renewed.thumbprint:
                    pass
                theirs.append(time.monotonic() - begun)
    return ours, theirs
