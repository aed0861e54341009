"""A mounted credential and the Entra ID that it is registered at, for the figures of the loader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from identity.credentials import sign_in
from identity.credentials.document import decode
from identity.credentials.token_credential import MountedCredential
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount, Entra, certificate, document

_CA_VARIABLE: Final = "REQUESTS_CA_BUNDLE"


class SignedInLoaders:
    """`ours` is the loader on the mounted file, `bare` azure-identity's client with the same credential.

    Both have a token for `scope` already. The client libraries trust this Entra ID as long as the context lasts.
    """

    scope = ARM_SCOPE

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            home = self._directory / "entra"
            home.mkdir()
            entra = stack.enter_context(Entra(home))
            stack.enter_context(trusting(entra.ca_file))
            issued = certificate()
            entra.registered.append(issued.certificate_pem)
            mount = CsiMount(self._directory / "mnt")
            mount.write(document(issued, entra.url))
            known = decode(mount.path.read_bytes())
            pem = known.key_material.pem()
            self.bare = stack.enter_context(sign_in.client(known.authority_host, known.tenant_id, known.client_id, pem))
            self.ours = stack.enter_context(MountedCredential(mount.path))
            for credential in (self.bare, self.ours):
                credential.get_token(self.scope)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


@contextmanager
def trusting(ca_file: Path) -> Iterator[None]:
    """Make the client libraries of this process trust these authorities."""
    before = os.environ.get(_CA_VARIABLE)
    os.environ[_CA_VARIABLE] = str(ca_file)
    try:
        yield
    finally:
        del os.environ[_CA_VARIABLE]
        if before is not None:
            os.environ[_CA_VARIABLE] = before
