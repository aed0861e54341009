"""Tokens from the cache: our loader against the azure-identity client that it wraps."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from azure.core.credentials import TokenCredential

from tests.unit.identity.credentials.world import ARM_SCOPE
from tools.bench.arithmetic import MIDDLE, of_the_middle_round
from tools.bench.figures import Figure, Limit
from tools.bench.measure import in_turn
from tools.bench.world import signed_in_loaders

_BATCH: Final = 100
_ROUNDS: Final = 500


def tokens() -> Figure:
    """Tokens for each second of CPU."""
    with TemporaryDirectory(prefix="bench-") as directory, signed_in_loaders(Path(directory)) as (mounted, client):
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
