"""Tokens from the cache: our loader against the azure-identity client that it wraps."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from unittest.mock import patch

from azure.core.credentials import TokenCredential
from azure.identity import CertificateCredential

from identity.credentials import sign_in
from identity.credentials.document import decode
from identity.credentials.token_credential import MountedCredential
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount, Entra, certificate, document
from tools.bench.arithmetic import MIDDLE, of_the_middle_round
from tools.bench.figures import Figure, Limit
from tools.bench.measure import in_turn

_BATCH: Final = 100
_ROUNDS: Final = 500


def tokens() -> Figure:
    """Tokens for each second of CPU."""
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


def trusting(ca_file: Path) -> AbstractContextManager[object]:
    """Make the client libraries of this process trust these authorities."""
    return patch.dict(os.environ, {"REQUESTS_CA_BUNDLE": str(ca_file)})
