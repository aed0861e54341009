"""The result of a round of the probe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.core.rest import HttpRequest

from identity.credentials import rfc3339
from identity.credentials.document import Credential
from identity.credentials.probe.credential_source import FederatedToken
from identity.credentials.rfc3339 import utc_now
from identity.credentials.transport import EnvironmentTransport

_KEYS: Final = {"method", "url", "scope", "action", "headers", "body"}
_TIMEOUT_SECONDS: Final = 20
_ERROR_LENGTH: Final = 500


@dataclass(frozen=True)
class Outcome:
    """How a sign-in or a call went: the error in one line, the call's HTTP status if it was answered, and when."""

    error: str | None
    status: int | None = None
    at: datetime = field(default_factory=utc_now)

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True, kw_only=True)
class ProofRequest:
    """`scope` is the token's (`https://.../.default`); `action` names the proven permission, for the report only."""

    method: str
    url: str
    scope: str
    action: str | None = None
    headers: Mapping[str, str]
    body: Mapping[str, Any] | None = None

    @classmethod
    def parse(cls, text: str) -> ProofRequest:
        """Read the argument's JSON; raises ValueError."""
        call = json.loads(text)
        if not isinstance(call, dict) or not {"method", "url", "scope"} <= call.keys() <= _KEYS:
            raise ValueError('accepted: {"method", "url", "scope"} and maybe "action", "headers", "body"')
        if not str(call["url"]).startswith("https://"):
            raise ValueError(f"url: found {call['url']!r}; accepted: https only, for the request carries a token")
        return cls(**{"headers": {}, **call})

    def make(self, token: str) -> Outcome:
        """Send the request. It follows no redirect: the token is for this host. Raises nothing."""
        request = HttpRequest(
            self.method, self.url, headers={**self.headers, "Authorization": f"Bearer {token}"}, json=self.body
        )
        transport = EnvironmentTransport(connection_timeout=_TIMEOUT_SECONDS, read_timeout=_TIMEOUT_SECONDS)
        try:
            with transport:
                response = transport.send(request)
                text = response.text()
        except AzureError as error:
            return Outcome(f"no answer from {self.url}: {_one_line(str(error))}")
        if 200 <= response.status_code < 300:
            return Outcome(None, response.status_code)
        return Outcome(f"{response.status_code} {_service_error(text)}", response.status_code)


def _service_error(text: str) -> str:
    """ARM's and Key Vault's error body as `code: message`, any other body as it is."""
    try:
        error = json.loads(text)["error"]
        return _one_line(f"{error['code']}: {error['message']}")
    except (ValueError, KeyError, TypeError):
        return _one_line(text) or "without a body"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_ERROR_LENGTH]


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """What the probe knows; None for what it has not tried yet."""

    file: Path | None = None
    credential: Credential | FederatedToken | None = None
    sign_in: Outcome | None = None
    proof: Outcome | None = None
    needs_proof: bool = True

    @property
    def is_ready(self) -> bool:
        """Whether the last sign-in worked, and the last proof call, if there is one to make."""
        is_proven = self.proof.ok if self.proof is not None else not self.needs_proof
        return is_proven and self.sign_in is not None and self.sign_in.ok

    @property
    def error(self) -> str | None:
        """The first failure."""
        if self.sign_in and self.sign_in.error:
            return self.sign_in.error
        return self.proof.error if self.proof else None

    def to_json(self, *, action: str | None, reloads: int) -> dict[str, Any]:
        """The report as `/readyz` shows it, with the permission that is proven and the number of reloads."""
        credential = self.credential
        return {
            "ready": self.is_ready,
            "credentialFile": str(self.file) if self.file else None,
            "notBefore": rfc3339.render(credential.not_before) if credential else None,
            "notAfter": rfc3339.render(credential.expires) if credential else None,
            "thumbprint": credential.thumbprint if credential else None,
            "clientId": credential.client_id if credential else None,
            "signIn": {
                "ok": self.sign_in is not None and self.sign_in.ok,
                "at": rfc3339.render(self.sign_in.at) if self.sign_in else None,
                "error": self.sign_in.error if self.sign_in else None,
            },
            "proof": {
                "ok": self.proof is not None and self.proof.ok,
                "status": self.proof.status if self.proof else None,
                "action": action,
                "error": self.proof.error if self.proof else None,
                "at": rfc3339.render(self.proof.at) if self.proof else None,
            },
            "reloads": reloads,
        }
