"""Our loader of a mounted credential: tokens from its cache, and from a swap of the driver's link to its service."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final
from unittest.mock import patch

from azure.core.credentials import TokenCredential
from azure.identity import CertificateCredential

from identity.credentials import sign_in
from identity.credentials.document import decode
from identity.credentials.events import Event, EventKind
from identity.credentials.token_credential import MountedCredential
from tests.msi_dataplane import SigningIn
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount, Entra, certificate, document
from tools.bench.figures import MIDDLE, Figure, Limit, of_the_middle_round
from tools.bench.measure import in_turn

_BATCH: Final = 100
_ROUNDS: Final = 500


def tokens() -> Figure:
    """Tokens for each second of CPU: our loader against the azure-identity client that it wraps."""
    with TemporaryDirectory(prefix="bench-") as directory, _signed_in_loaders(Path(directory)) as (mounted, client):
        ours, bare = in_turn(_ROUNDS, lambda: _rate(mounted), lambda: _rate(client))
    our_rate, bare_rate = of_the_middle_round(ours, bare)
    return Figure(
        name="tokens from the cache, for each second of CPU",
        unit="/s",
        ours=our_rate,
        peer=bare_rate,
        peer_name="azure-identity's CertificateCredential by itself",
        limit=Limit("at least", 0.9),
        note=f"{MIDDLE} of {_ROUNDS}, batches of {_BATCH} each, CPU of the asking thread",
    )


def _rate(credential: TokenCredential) -> float:
    begun = time.thread_time()
    for _ in range(_BATCH):
        credential.get_token(ARM_SCOPE)
    return _BATCH / (time.thread_time() - begun)


@contextmanager
def _signed_in_loaders(directory: Path) -> Iterator[tuple[MountedCredential, CertificateCredential]]:
    """The loader on a mounted file, and azure-identity's client with the same credential.

    Both have a token for ARM already. The client libraries trust this Entra ID as long as the context lasts.
    """
    home = directory / "entra"
    home.mkdir()
    with Entra(home) as entra, trusting(entra.ca_file):
        issued = certificate()
        entra.registered.append(issued.certificate_pem)
        mount = CsiMount(directory / "mnt")
        mount.write(document(issued, entra.url))
        known = decode(mount.path.read_bytes())
        pem = known.key_material.pem()
        with (
            sign_in.client(known.authority_host, known.tenant_id, known.client_id, pem) as bare,
            MountedCredential(mount.path) as ours,
        ):
            for credential in (bare, ours):
                credential.get_token(ARM_SCOPE)
            yield ours, bare


_SWAPS: Final = 5
# The upstream loader sees a swap when it reads the file anyway: every 6 h. Here it does 2,160 times as often.
_BACKSTOP: Final = 10.0  # seconds
# The driver's --rotation-poll-interval, seconds: by so much the swap itself may come late.
_POLL: Final = 120.0


def swap() -> Iterator[Figure]:
    """The same swaps, watched by our loader and the upstream one at the same time."""
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


def trusting(ca_file: Path) -> AbstractContextManager[object]:
    """Make the client libraries of this process trust these authorities."""
    return patch.dict(os.environ, {"REQUESTS_CA_BUNDLE": str(ca_file)})
