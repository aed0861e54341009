"""An application that signs in at the local Entra with a certificate, as real clients do."""

from __future__ import annotations

import base64
import hashlib
import ssl
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast

import httpx
import jwt
from azure.identity import CertificateCredential
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.objects import KeyCredential
from localcloud.core import clock
from localcloud.core.clouds import LOCAL_TENANT_ID, LocalEnvironment
from localcloud.testing.certificates import IssuedCertificate, issue

ARM_SCOPE = "https://management.core.windows.net//.default"


def certificate(*, not_before: datetime | None = None, days: int = 90) -> IssuedCertificate:
    """A new certificate with its key, by default of a month ago."""
    return issue(not_before=not_before or clock.now() - timedelta(days=30), lifetime=timedelta(days=days))


# RSA keys take longer to make and to check than all the rest of a test.
shared_certificate = cache(certificate)


@cache
def _private_key(pem: str) -> rsa.RSAPrivateKey:
    return cast(rsa.RSAPrivateKey, load_pem_private_key(pem.encode(), None))


def registration(issued: IssuedCertificate) -> KeyCredential:
    """A new registration of a certificate."""
    return KeyCredential.of(x509.load_pem_x509_certificate(issued.certificate_pem.encode()))


def assertion(
    client_id: str,
    endpoint: str,
    issued: IssuedCertificate,
    *,
    claims: Mapping[str, Any] | None = None,
    signed_by: IssuedCertificate | None = None,
    algorithm: str = "RS256",
    headers: Mapping[str, str] | None = None,
) -> str:
    """A client assertion; `claims` replace single ones of a right one, `headers` all of its headers."""
    now = int(clock.now().timestamp())
    right = {"aud": endpoint, "iss": client_id, "sub": client_id, "nbf": now, "exp": now + 600}
    digest = base64.urlsafe_b64encode(hashlib.sha256(registration(issued).certificate).digest()).rstrip(b"=").decode()
    return jwt.encode(
        {**right, "jti": str(uuid.uuid4()), **(claims or {})},
        _private_key((signed_by or issued).private_key_pem),
        algorithm=algorithm,
        headers=dict(headers or {"x5t#S256": digest}),
    )


def form_with(client_id: str, client_assertion: str) -> dict[str, str]:
    """The form of a sign-in with a client assertion."""
    return {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "scope": ARM_SCOPE,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": client_assertion,
    }


def deployer_credential(environment: LocalEnvironment, **changed: Any) -> CertificateCredential:
    """azure-identity's own credential of a local cloud's deployer; keywords replace what it is told."""
    told = {"authority": environment.authority_host, "connection_verify": environment.ca_file, **changed}
    signing = (environment.tenant_id, environment.deployer_client_id, environment.deployer_certificate)
    return CertificateCredential(*signing, disable_instance_discovery=True, **told)


@dataclass(frozen=True)
class TokenClient:
    """An application of the tenant with a registered certificate, and how to reach Entra."""

    azure: LocalAzure
    authority: str
    ca_file: Path
    app_id: str
    object_id: str
    issued: IssuedCertificate

    @classmethod
    def create(cls, azure: LocalAzure, authority: str, ca_file: Path) -> TokenClient:
        """A new application, whose certificate is registered now."""
        issued = shared_certificate()
        application = azure.directory.create_application("client")
        azure.directory.create_service_principal(application.app_id)
        azure.directory.set_key_credentials(application.object_id, [registration(issued)])
        return cls(azure, authority, ca_file, application.app_id, application.object_id, issued)

    def credential(self, **changed: Any) -> CertificateCredential:
        """azure-identity's own credential; keywords replace tenant_id, client_id or the certificate (`issued`)."""
        issued: IssuedCertificate = changed.pop("issued", self.issued)
        names = {"tenant_id": LOCAL_TENANT_ID, "client_id": self.app_id, **changed}
        return CertificateCredential(
            **names,
            certificate_data=(issued.private_key_pem + issued.certificate_pem).encode(),
            authority=self.authority,
            disable_instance_discovery=True,
            connection_verify=str(self.ca_file),
        )

    def post(self, *, form: Mapping[str, str] | None = None, **changed: Any) -> httpx.Response:
        """A token request made by hand; `form` replaces single values of a right one, `changed` as for `assertion`."""
        endpoint = f"{self.authority}/{LOCAL_TENANT_ID}/oauth2/v2.0/token"
        right = form_with(self.app_id, assertion(self.app_id, endpoint, self.issued, **changed))
        with self.http() as client:
            return client.post(endpoint, data={**right, **(form or {})})

    def http(self) -> httpx.Client:
        """A plain client that trusts the local cloud."""
        return httpx.Client(verify=ssl.create_default_context(cafile=self.ca_file))
