"""A mounted credential and the Entra ID that it is registered at, for the figures of the loader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from unittest.mock import patch

from azure.identity import CertificateCredential

from identity.credentials import sign_in
from identity.credentials.document import decode
from identity.credentials.token_credential import MountedCredential
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount, Entra, certificate, document


@contextmanager
def signed_in_loaders(directory: Path) -> Iterator[tuple[MountedCredential, CertificateCredential]]:
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
