"""A `TokenCredential` for a credential file that the Secrets Store CSI driver mounts and replaces.

The semantics are those of the upstream loader (github.com/Azure/msi-dataplane v0.4.3,
pkg/dataplane/reloadCredentials.go): the authority comes from the file, the certificate chain is sent, a file replaces
the loaded credential only if its `not_before` is strictly later, and it is read again every 6 hours. Three things are
better: a swap of the driver's link is seen at once, an expired file is refused here and not at the next sign-in, and a
later credential is served only after it got a token. `docs/reference/loader.md` compares the two.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from azure.core.credentials import AccessToken, AccessTokenInfo, TokenRequestOptions
from azure.identity import CertificateCredential

from identity.credentials import sign_in
from identity.credentials.document import Credential
from identity.credentials.events import Event
from identity.credentials.mounted_file import DirectoryWatch, MountedFile
from identity.credentials.rfc3339 import Clock, utc_now
from identity.credentials.rotation import Rotation, TokenRequest

# Azure Resource Manager of the public cloud. Two slashes: the audience ends in one (azcore `cloud.AzurePublic`).
ARM_SCOPE: Final = "https://management.core.windows.net//.default"

# Seconds; azure-core's own limit is 300 for each, and `close` waits for the request in flight.
_TIMEOUTS: Final = {"connection_timeout": 5, "read_timeout": 15}


class MountedCredential:
    """Signs in with the credential document at `path`, and with its successors. Threads may share it.

    `authority` (an https URL) overrides the one in the file. A successor is proven by a token for the scope that was
    granted last, or for `scope` if none was yet. `clock` is used for expiry, backstop and pauses. `on_event` is called
    in the thread of the event, also for the first load; it must not `reload` or `close`, and its exceptions are logged.
    `client_options` go to azure-core's pipeline, one for each certificate.

    Raises `CredentialUnavailableError` if the file cannot be read, `InvalidCredentialError` if it cannot be used,
    ValueError for an authority that is not https. A later file like that is logged and reported, and the last good
    credential goes on. Close it, or use it as a context.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        authority: str | None = None,
        scope: str = ARM_SCOPE,
        clock: Clock = utc_now,
        on_event: Callable[[Event], object] = lambda event: None,
        **client_options: Any,
    ) -> None:
        self._path = Path(path)
        self._authority = authority
        self._client_options = {**_TIMEOUTS, **client_options}
        self._rotation = Rotation(
            MountedFile(self._path, clock), self._connect, scope=scope, clock=clock, on_event=on_event
        )
        self._directory_watch = DirectoryWatch(self._path.parent)
        self._watcher = threading.Thread(target=self._watch, name=f"watch {self._path.name}", daemon=True)
        self._watcher.start()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def credential(self) -> Credential:
        """The credential that is served now."""
        return self._rotation.served

    @property
    def is_watching(self) -> bool:
        """Whether the file is watched: from the first load until `close`. Only a defect, or a fork of the process,
        ends the watch before.
        """
        return self._watcher.is_alive()

    @property
    def authority_host(self) -> str:
        """The https URL of the authority that is asked."""
        return self._authority or self.credential.authority_host

    def get_token(
        self,
        *scopes: str,
        claims: str | None = None,
        tenant_id: str | None = None,
        enable_cae: bool = False,
        **kwargs: Any,
    ) -> AccessToken:
        """A token for `scopes`, from the cache while it lasts; raises ClientAuthenticationError.

        Callers that request the same at the same time share the token or the failure, and for a second more the failure
        to reach Entra ID. Other keywords are ignored.
        """
        token = self._rotation.token(TokenRequest(scopes, claims, tenant_id, enable_cae))
        return AccessToken(token.token, token.expires_on)

    def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """As `get_token`, with the token's type and the time to refresh it."""
        return self._rotation.token(TokenRequest.with_options(scopes, options))

    def reload(self) -> bool:
        """Read the file now; returns whether it holds a later credential, which got a token and is served from then on.

        Not needed: the directory is watched.
        """
        return self._rotation.reload()

    def close(self) -> None:
        """Stop watching and close the connections to Entra ID. Waits for the request in flight."""
        self._directory_watch.stop()
        self._watcher.join()
        self._rotation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()

    def _connect(self, credential: Credential) -> CertificateCredential:
        return sign_in.client(
            self._authority or credential.authority_host,
            credential.tenant_id,
            credential.client_id,
            credential.key_material.pem(),
            **self._client_options,
        )

    def _watch(self) -> None:
        for _ in self._directory_watch.changes(lambda: self._rotation.has_candidate):
            # It reports every failure; only a log handler of the process may still raise.
            with suppress(Exception):
                self._rotation.poll()
