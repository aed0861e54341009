"""The result of a round of the probe."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from identity.credentials import rfc3339
from identity.credentials.document import Credential
from identity.credentials.probe.federated_token import FederatedToken
from identity.credentials.probe.proof import ProofResult


@dataclass(frozen=True)
class SignInResult:
    """How the last sign-in went, and when."""

    at: datetime
    error: str | None


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """What the probe knows; None for what it has not tried yet."""

    file: Path | None = None
    credential: Credential | FederatedToken | None = None
    sign_in: SignInResult | None = None
    proof: ProofResult | None = None
    needs_proof: bool = True

    @property
    def is_ready(self) -> bool:
        """Whether the last sign-in worked, and the last proof call, if there is one to make."""
        is_proven = self.proof.ok if self.proof is not None else not self.needs_proof
        return is_proven and self.sign_in is not None and self.sign_in.error is None

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
                "ok": self.sign_in is not None and self.sign_in.error is None,
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
