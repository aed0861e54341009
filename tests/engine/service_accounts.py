"""Tokens of a guest cluster's service accounts, and what Entra ID and ARM make of them."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import jwt

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, FEDERATED_AUDIENCE
from identity.catalogue_rows import DataPlaneIdentity, ProofCall, ProofTarget
from identity.credentials.service_account_key import public_half
from tests.harness import LocalStack

ARM: Final = "https://management.core.windows.net//.default"
SUBJECTS: Final = [(row, subject.subject) for row in DATA_PLANE for subject in row.subjects]


@dataclass(frozen=True)
class Answer:
    """What a token exchange came to: an access token, or the number of Entra's error."""

    token: str = ""
    error: int = 0


class GuestCluster:
    """The service accounts of one hosted cluster: their tokens are signed by `pem`, a private key."""

    def __init__(self, stack: LocalStack, issuer: str, pem: str) -> None:
        self._stack = stack
        self._issuer = issuer
        self.pem = pem

    def token(self, subject: str, key_id: str | None = None, **claims: Any) -> str:
        """A token as kube-apiserver issues it for a projected volume."""
        now = datetime.now(UTC)
        whole = {
            "iss": self._issuer,
            "sub": subject,
            "aud": [FEDERATED_AUDIENCE],
            "iat": now,
            "nbf": now,
            "exp": now + timedelta(hours=1),
            **claims,
        }
        headers = {"kid": key_id or public_half(self.pem).key_id}
        return jwt.encode(whole, self.pem, algorithm="RS256", headers=headers)

    def exchange(self, client_id: str, assertion: str) -> Answer:
        """Exchange a service account's token for one of the managed identity (RFC 7523)."""
        local = self._stack.environment
        form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "scope": ARM,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": assertion,
        }
        answer = self._http().post(f"{local.authority_host}{local.tenant_id}/oauth2/v2.0/token", data=form)
        if answer.is_success:
            return Answer(token=answer.json()["access_token"])
        found = re.match(r"AADSTS(\d+)", answer.json()["error_description"])
        assert found, answer.text
        return Answer(error=int(found[1]))

    def call(self, proof: ProofCall, token: str) -> int:
        """The status of a proof call with a token."""
        local = self._stack.environment
        target = ProofTarget(
            subscription=local.subscription_id, managed="hc1-managed", vnet_group="", vnet="", subnet=""
        )
        url = f"{local.arm_endpoint}{proof.path_of(target)}"
        headers = {"Authorization": f"Bearer {token}"}
        return self._http().get(url, params={"api-version": proof.api_version}, headers=headers).status_code

    def _http(self) -> httpx.Client:
        trust = ssl.create_default_context(cafile=self._stack.environment.ca_file)
        return httpx.Client(verify=trust, timeout=30, trust_env=False)


def proof_of(row: DataPlaneIdentity) -> ProofCall:
    """The proof call of the control plane's identity that has the same role."""
    return next(identity.proof for identity in CONTROL_PLANE if identity.hypershift.role == row.hypershift.role)
