"""Stages 6 to 8 with the real client library: every mounted credential signs in, and its role decides.

Nothing here knows the local cloud but its endpoints: the clients are azure-identity and `requests`, the files are those
that the kubelet mounted.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

import jwt
import pytest
import requests
from azure.core.credentials import AccessToken
from azure.identity import CertificateCredential
from cryptography import x509

from identity.credentials.certificate import thumbprint
from tests.engine.clients import read
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


def _file(stack: LocalStack, workload: str, path: str, secret: str) -> Path:
    return Path(stack.environment.mounts_dir, _NAMESPACE, workload, path, secret)


def _token(document: dict[str, str]) -> AccessToken:
    """A sign-in with a mounted credential, read by hand so that no test leans on the code under test."""
    with CertificateCredential(
        document["tenant_id"],
        document["client_id"],
        certificate_data=base64.b64decode(document["client_secret"], validate=True),
        authority=document["authentication_endpoint"],
        disable_instance_discovery=True,
        send_certificate_chain=True,
    ) as credential:
        return credential.get_token(_ARM_SCOPE)


@pytest.mark.parametrize("mount", _MOUNTS, ids=[workload for workload, *_ in _MOUNTS])
def test_a_mounted_credential_signs_in(stack: LocalStack, mount: tuple[str, str, str]) -> None:
    document = read(_file(stack, *mount))

    token = _token(document)

    claims = jwt.decode(token.token, options={"verify_signature": False})
    assert (claims["tid"], claims["appid"]) == (stack.environment.tenant_id, document["client_id"])
    assert claims["aud"].rstrip("/") in {"https://management.core.windows.net", "https://management.azure.com"}
    assert token.expires_on > datetime.now(UTC).timestamp() + 3000, "a token lives an hour or more"


@pytest.mark.parametrize("mount", _MOUNTS, ids=[workload for workload, *_ in _MOUNTS])
def test_the_control_planes_own_loader_signs_in_with_it(stack: LocalStack, mount: tuple[str, str, str]) -> None:
    file = _file(stack, *mount)
    certificate = x509.load_pem_x509_certificate(base64.b64decode(read(file)["client_secret"]))

    with SigningIn(file, stack.environment.ca_file) as upstream:
        signed_in = upstream.next()

    assert (signed_in.thumbprint, signed_in.error) == (thumbprint(certificate), "")


def test_nine_identities_are_nine_principals(stack: LocalStack) -> None:
    clients = {read(_file(stack, *mount))["client_id"] for mount in _MOUNTS}

    assert len(clients) == 9, "ten mounts, nine identities: the operator and kube-apiserver share the KMS one"


def test_what_the_role_does_not_grant_is_forbidden(stack: LocalStack) -> None:
    token = _token(read(_file(stack, *_MOUNTS[0]))).token
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
