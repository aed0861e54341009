"""Stages 6 to 8 with the real client library: every mounted credential signs in, and its role decides.

Nothing here knows the local cloud but its endpoints: the clients are azure-identity and `requests`, the files are those
that the kubelet mounted.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import jwt
import pytest
import requests
from azure.core.credentials import AccessToken
from azure.identity import CertificateCredential
from cryptography import x509

from identity.clouds import LocalEnvironment
from identity.credentials.certificate import thumbprint
from tests.harness import LocalStack
from tests.msi_dataplane import SigningIn

_ARM_SCOPE = "https://management.core.windows.net//.default"
_NAMESPACE = "clusters-hc1"

# Deployment of the probe, mount path and secret of each of the ten mounts.
_MOUNTS = [
    ("probe-cloud-provider", "mnt/certs", "cloud-provider-hc1-json"),
    ("probe-nodepool-management", "mnt/certs", "nodepool-mgmt-hc1-json"),
    ("probe-cpo", "mnt/certs", "cpo-hc1-json"),
    ("probe-image-registry", "mnt/certs", "ciro-hc1-json"),
    ("probe-ingress", "mnt/certs", "ingress-hc1-json"),
    ("probe-network", "var/run/secrets/azure", "cncc-hc1-json"),
    ("probe-disk-csi", "mnt/certs", "azure-disk-hc1-json"),
    ("probe-file-csi", "mnt/certs", "azure-file-hc1-json"),
    ("probe-kms", "mnt/certs", "kms-hc1-json"),
    ("probe-kms-2", "mnt/kms", "kms-hc1-json"),
]


@dataclass(frozen=True)
class Document:
    """A mounted credential, read by hand so that the test does not lean on the code under test."""

    client_id: str
    tenant_id: str
    authority: str
    pem: bytes

    @classmethod
    def read(cls, path: Path) -> Document:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            client_id=raw["client_id"],
            tenant_id=raw["tenant_id"],
            authority=raw["authentication_endpoint"],
            pem=base64.b64decode(raw["client_secret"], validate=True),
        )

    def token(self) -> AccessToken:
        with CertificateCredential(
            self.tenant_id,
            self.client_id,
            certificate_data=self.pem,
            authority=self.authority,
            disable_instance_discovery=True,
            send_certificate_chain=True,
        ) as credential:
            return credential.get_token(_ARM_SCOPE)


def _mounted(environment: LocalEnvironment, workload: str, path: str, secret: str) -> Document:
    return Document.read(Path(environment.mounts_dir, _NAMESPACE, workload, path, secret))


@pytest.mark.parametrize(("workload", "path", "secret"), _MOUNTS, ids=[workload for workload, *_ in _MOUNTS])
def test_a_mounted_credential_signs_in(stack: LocalStack, workload: str, path: str, secret: str) -> None:
    mounted = _mounted(stack.environment, workload, path, secret)

    token = mounted.token()

    claims = jwt.decode(token.token, options={"verify_signature": False})
    assert (claims["tid"], claims["appid"]) == (stack.environment.tenant_id, mounted.client_id)
    assert claims["aud"].rstrip("/") in {"https://management.core.windows.net", "https://management.azure.com"}
    assert token.expires_on > datetime.now(UTC).timestamp() + 3000, "a token lives an hour or more"


@pytest.mark.parametrize(("workload", "path", "secret"), _MOUNTS, ids=[workload for workload, *_ in _MOUNTS])
def test_the_control_planes_own_loader_signs_in_with_it(
    stack: LocalStack, workload: str, path: str, secret: str
) -> None:
    file = Path(stack.environment.mounts_dir, _NAMESPACE, workload, path, secret)
    certificate = x509.load_pem_x509_certificate(Document.read(file).pem)

    with SigningIn(file, stack.environment.ca_file) as upstream:
        signed_in = upstream.next()

    assert (signed_in.thumbprint, signed_in.error) == (thumbprint(certificate), "")


def test_nine_identities_are_nine_principals(stack: LocalStack) -> None:
    clients = {_mounted(stack.environment, *mount).client_id for mount in _MOUNTS}

    assert len(clients) == 9, "ten mounts, nine identities: the operator and kube-apiserver share the KMS one"


def test_what_the_role_does_not_grant_is_forbidden(stack: LocalStack) -> None:
    token = _mounted(stack.environment, *_MOUNTS[0]).token().token
    group = f"/subscriptions/{stack.environment.subscription_id}/resourceGroups/hc1-managed"

    def get(path: str) -> requests.Response:
        return requests.get(
            f"{stack.environment.arm_endpoint}{path}",
            params={"api-version": "2021-04-01"},
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
            verify=stack.environment.ca_file,
        )

    granted = get(f"{group}/providers/Microsoft.Network/loadBalancers")
    refused = get(group)

    assert granted.status_code == 200
    assert refused.status_code == 403
    error = refused.json()["error"]
    assert error["code"] == "AuthorizationFailed"
    assert "'Microsoft.Resources/subscriptions/resourceGroups/read'" in error["message"]
