"""A `TokenCredential` for a credential file that the Secrets Store CSI driver mounts and replaces.

The semantics are those of the upstream loader (github.com/Azure/msi-dataplane v0.4.3,
pkg/dataplane/reloadCredentials.go): the authority comes from the file, the certificate chain is sent, a file replaces
the loaded credential only if its `not_before` is strictly later, it is read again every 6 hours whatever happens. Two
things are better. The driver writes a new directory and renames the `..data` link, which a watch on the file's inode
never sees, so this one watches the directory. And an expired file is refused here, not at the next sign-in.

Whether Entra ID knows a new certificate already is not asked: it is registered and proven before it is stored.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import watchfiles
from azure.core.credentials import AccessToken, AccessTokenInfo, TokenRequestOptions
from azure.identity import CertificateCredential, CredentialUnavailableError

from identity.credentials import document, rfc3339, sign_in
from identity.credentials.document import Credential, InvalidCredential
from identity.credentials.sign_in import Clock, utc_now

_LOG: Final = logging.getLogger(__name__)

# As upstream: the file is read again this long after it was last read, even if nothing was seen to change.
BACKSTOP: Final = timedelta(hours=6)

# How often the file is looked at besides the watch, which is lost with a remount or never granted (inotify limits).
_LOOK_EVERY: Final = timedelta(seconds=5)
# Changes closer together than this are one change: a link swap is several.
_SETTLE: Final = timedelta(milliseconds=100)


@dataclass(frozen=True)
class Load:
    """One reading of the file: what it held, whether that is served from now on, or why the file is refused."""

    credential: Credential | None
    replaced: bool
    problem: str | None


@dataclass(frozen=True)
class _Active:
    credential: Credential
    client: CertificateCredential
    # azure-identity does not promise that two threads may ask one client at the same time.
    lock: threading.Lock = field(default_factory=threading.Lock)


class MountedCredential:
    """Signs in with the credential document at `path`, and with its successors.

    `authority` (an https URL) overrides the one in the file. `clock` tells the time for expiry and backstop. `on_load`
    is called after every reading, the first included, in the thread that did it. `client_options` go to azure-core's
    pipeline.

    Raises `CredentialUnavailableError` if the file can not be read, `InvalidCredential` if it can not be used. A later
    file like that is logged and reported to `on_load`, and the last good credential goes on. Close it, or use it as a
    context.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        authority: str | None = None,
        clock: Clock = utc_now,
        on_load: Callable[[Load], object] = lambda load: None,
        **client_options: Any,
    ) -> None:
        self._path = Path(path)
        self._authority = authority
        self._clock = clock
        self._on_load = on_load
        self._client_options = client_options
        self._reading = threading.Lock()
        self._closed = threading.Event()
        self._identity = self._file_identity()
        self._read_at = clock()
        self._active = self._activate(self._read())
        self._problem: str | None = None
        on_load(Load(self._active.credential, replaced=True, problem=None))
        self._watcher = threading.Thread(target=self._watch, name=f"watch {self._path.name}", daemon=True)
        self._watcher.start()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def credential(self) -> Credential:
        """The credential that is served now."""
        return self._active.credential

    @property
    def authority_host(self) -> str:
        """The https URL of the authority that is asked."""
        return self._authority or self._active.credential.authority_host

    def get_token(
        self,
        *scopes: str,
        claims: str | None = None,
        tenant_id: str | None = None,
        enable_cae: bool = False,
        **kwargs: Any,
    ) -> AccessToken:
        """A token for `scopes`, from the cache while it lasts; raises ClientAuthenticationError."""
        active = self._active
        with active.lock:
            return active.client.get_token(*scopes, claims=claims, tenant_id=tenant_id, enable_cae=enable_cae, **kwargs)

    def get_token_info(self, *scopes: str, options: TokenRequestOptions | None = None) -> AccessTokenInfo:
        """As `get_token`, with the token's type and the time to refresh it."""
        active = self._active
        with active.lock:
            return active.client.get_token_info(*scopes, options=options)

    def reload(self) -> bool:
        """Read the file now; returns whether it holds a later credential, which is served from then on."""
        with self._reading:
            self._identity = self._file_identity()
            self._read_at = self._clock()
            load = self._load()
            self._tell(load)
            self._on_load(load)
            return load.replaced

    def close(self) -> None:
        """Stop watching and close the connections to Entra ID."""
        self._closed.set()
        self._watcher.join()
        with self._active.lock:
            self._active.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()

    def _load(self) -> Load:
        try:
            credential = self._read()
        except (CredentialUnavailableError, InvalidCredential) as error:
            return Load(None, replaced=False, problem=str(error))
        if credential.not_before <= self._active.credential.not_before:
            return Load(credential, replaced=False, problem=None)
        # The old client is dropped, not closed: another thread may be in the middle of a request with it.
        self._active = self._activate(credential)
        return Load(credential, replaced=True, problem=None)

    def _read(self) -> Credential:
        try:
            content = self._path.read_bytes()
        except OSError as error:
            raise CredentialUnavailableError(
                f"credential file {self._path}: found no readable file ({error.strerror}); "
                "check that the volume of its SecretProviderClass is mounted there and that the secret exists"
            ) from None
        credential = document.decode(content)
        if credential.expires <= self._clock():
            raise InvalidCredential(
                [
                    f"not_after: found a credential that expired at {rfc3339.render(credential.expires)} "
                    f"(certificate {credential.thumbprint}); accepted: one that is still valid; renew it"
                ]
            )
        return credential

    def _activate(self, credential: Credential) -> _Active:
        authority = self._authority or credential.authority_host
        bundle = credential.key_material.pem()
        return _Active(
            credential,
            sign_in.client(authority, credential.tenant_id, credential.client_id, bundle, **self._client_options),
        )

    def _tell(self, load: Load) -> None:
        """Log what changed; the same problem is told once."""
        if load.replaced:
            served = self._active.credential
            _LOG.info("credential %s loaded, valid from %s", served.thumbprint, rfc3339.render(served.not_before))
        elif load.problem and load.problem != self._problem:
            _LOG.warning("credential file %s refused, the loaded one goes on: %s", self._path, load.problem)
        self._problem = load.problem

    def _watch(self) -> None:
        while not self._closed.is_set():
            try:
                for _ in watchfiles.watch(
                    self._path.parent,
                    watch_filter=None,
                    recursive=False,
                    step=_milliseconds(_SETTLE),
                    rust_timeout=_milliseconds(_LOOK_EVERY),
                    yield_on_timeout=True,
                    stop_event=self._closed,
                ):
                    self._reload_if_changed()
            except (OSError, RuntimeError) as error:
                _LOG.warning(
                    "directory %s can not be watched (%s): looking every few seconds", self._path.parent, error
                )
                self._closed.wait(_LOOK_EVERY.total_seconds())
                self._reload_if_changed()

    def _reload_if_changed(self) -> None:
        if self._file_identity() != self._identity or self._clock() - self._read_at >= BACKSTOP:
            self.reload()

    def _file_identity(self) -> tuple[int, ...] | None:
        """What changes when the file is replaced or written, links followed; None while there is no file."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _milliseconds(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
