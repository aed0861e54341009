"""How this program asks over HTTPS: through the environment's proxy, with its authorities, and as nobody of ~/.netrc.

`requests` reads them all or none (`trust_env`): a `default` of ~/.netrc would take the place of every bearer token, and
send a person's password to Entra ID. It reads ~/.netrc only for a session without `auth`, and at redirects.
"""

from __future__ import annotations

import os
from typing import Any

from azure.core.exceptions import ServiceRequestError
from azure.core.pipeline.transport import RequestsTransport
from requests import Session


def ca_bundle() -> str | bool:
    """The file of trusted authorities: that of `requests`, or of Go and OpenSSL; True for the default ones."""
    return os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE") or True


def without_netrc(session: Session) -> Session:
    """The session, which now presents what its caller presents, and follows no redirect."""
    session.auth = lambda request: request
    session.max_redirects = 0
    return session


class EnvironmentTransport(RequestsTransport):  # type: ignore[misc,no-any-unimported]
    """azure-core's, with its options; without `connection_verify` the environment's authorities are trusted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"connection_verify": ca_bundle(), **options})

    def open(self) -> None:
        """Open the session."""
        super().open()
        without_netrc(self.session)

    def send(self, request: Any, **options: Any) -> Any:
        """The answer; raises AzureError, also for a file of authorities that cannot be used."""
        try:
            return super().send(request, **options)
        except OSError as error:
            wrong = f"no trusted authorities ({error}); correct REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE"
            raise ServiceRequestError(wrong, error=error) from None
