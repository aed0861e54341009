"""How the user of a kubeconfig signs in, beside the programs that print tokens (`test_api_server.py`)."""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.access.cluster_user import present_certificate, token
from identity.access.errors import AccessError
from identity.credentials.certificate import IssuedCertificate, issue


@pytest.fixture(scope="module")
def issued() -> IssuedCertificate:
    return issue("admin", not_before=datetime.now(UTC) - timedelta(minutes=5), lifetime=timedelta(days=1))


def presented(user: dict[str, Any], issued: IssuedCertificate, folder: Path) -> dict[str, Any]:
    """What a server that asks for a certificate gets in a handshake in memory; it has the same one."""
    (folder / "server.pem").write_text(issued.private_key_pem + issued.certificate_pem)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=issued.certificate_pem)
    server.load_cert_chain(folder / "server.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    server.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    present_certificate(user, client)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return dict(ends[1].getpeercert() or {})


def test_a_certificate_in_the_kubeconfig_is_presented(issued: IssuedCertificate, tmp_path: Path) -> None:
    user = {
        "client-certificate-data": base64.b64encode(issued.certificate_pem.encode()).decode(),
        "client-key-data": base64.b64encode(issued.private_key_pem.encode()).decode(),
    }

    assert presented(user, issued, tmp_path)["subject"] == ((("commonName", "admin"),),)
    assert token(user, {}) == ""


def test_a_certificate_in_files_is_presented(issued: IssuedCertificate, tmp_path: Path) -> None:
    (tmp_path / "admin.crt").write_text(issued.certificate_pem)
    (tmp_path / "admin.key").write_text(issued.private_key_pem)
    user = {"client-certificate": str(tmp_path / "admin.crt"), "client-key": str(tmp_path / "admin.key")}

    assert presented(user, issued, tmp_path)["subject"] == ((("commonName", "admin"),),)


def test_no_certificate_is_needed(issued: IssuedCertificate, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        presented({"token": "a-token"}, issued, tmp_path)
    assert token({"token": "a-token"}, {}) == "a-token"


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [("!", "client-certificate-data of the kubeconfig's user is not base64"), ("bm9uZQ==", "cannot be used")],
)
def test_a_certificate_that_is_none_is_named(certificate: str, reason: str) -> None:
    user = {"client-certificate-data": certificate, "client-key-data": certificate}

    with pytest.raises(AccessError, match=reason):
        present_certificate(user, ssl.create_default_context())
