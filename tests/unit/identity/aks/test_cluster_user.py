"""How the user of a kubeconfig signs in, beside the programs that print tokens (`test_api_server.py`)."""

from __future__ import annotations

import base64
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from identity.aks.cluster_user import ClusterCredential, credential, present
from identity.azure.errors import AccessError
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
    if found := credential(user, {}, {}).certificate:
        present(found, client)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return dict(ends[1].getpeercert() or {})


def test_a_certificate_in_the_kubeconfig_or_in_files_is_presented(issued: IssuedCertificate, tmp_path: Path) -> None:
    data = {
        "client-certificate-data": base64.b64encode(issued.certificate_pem.encode()).decode(),
        "client-key-data": base64.b64encode(issued.private_key_pem.encode()).decode(),
    }
    (tmp_path / "admin.crt").write_text(issued.certificate_pem)
    (tmp_path / "admin.key").write_text(issued.private_key_pem)
    files = {"client-certificate": str(tmp_path / "admin.crt"), "client-key": str(tmp_path / "admin.key")}

    for user in (data, files):
        assert presented(user, issued, tmp_path)["subject"] == ((("commonName", "admin"),),)
        assert credential(user, {}, {}).headers == ()
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        presented({"token": "a-token"}, issued, tmp_path)
    assert credential({"token": "a-token"}, {}, {}).headers == (("Authorization", "Bearer a-token"),)


@pytest.mark.parametrize("key", ["none", "encrypted"])
def test_a_certificate_that_cannot_be_used_is_refused_without_a_question(key: str, issued: IssuedCertificate) -> None:
    private = serialization.load_pem_private_key(issued.private_key_pem.encode(), None)
    secured = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"p")
    )

    pair = issued.certificate_pem.encode(), {"none": b"none", "encrypted": secured}[key]

    with pytest.raises(AccessError, match="cannot be used"):
        present(pair, ssl.create_default_context())


def program(folder: Path, script: str) -> dict[str, Any]:
    (folder / "plugin").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "plugin").chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(folder / "plugin")}}


def test_a_program_that_asks_a_person_ends_with_what_it_has_asked(tmp_path: Path) -> None:
    """The program's own child goes with it; a pipe that it holds open would be waited for."""
    user = program(tmp_path, "echo 'open https://microsoft.com/devicelogin, enter ABC123' >&2\nsleep 900")

    with pytest.raises(AccessError, match=r"within 0.5 seconds: open https://microsoft.com/devicelogin, enter ABC123"):
        credential(user, {}, os.environ, timeout=0.5)


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("{}", "printed no ExecCredential"),
        ("[]", "printed no ExecCredential"),
        ('{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": 1}}', "printed no ExecCredential"),
        ('{"apiVersion": "client.authentication.k8s.io/v1", "status": {}}', "neither a token nor a certificate"),
        ('{"apiVersion": "client.authentication.k8s.io/v1", "status": {"clientKeyData": "k"}}', "both are needed"),
        ('{"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "t"}}', "answers in .*v1beta1"),
    ],
)
def test_an_answer_that_is_none_is_refused_in_words(printed: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=reason):
        credential(program(tmp_path, f"echo '{printed}'"), {}, os.environ)


def test_a_person_who_is_somebody_else_is_asked_about_as_that_one() -> None:
    user = {"token": "t", "as": "jane", "as-uid": "1", "as-groups": ["a", "b"], "as-user-extra": {"k": ["v"]}}

    assert credential(user, {}, {}) == ClusterCredential(
        "t",
        None,
        (
            ("Impersonate-User", "jane"),
            ("Impersonate-Uid", "1"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-k", "v"),
            ("Authorization", "Bearer t"),
        ),
    )


def test_a_token_file_is_read_again_for_each_sign_in(tmp_path: Path) -> None:
    file = tmp_path / "token"
    user = {"token": "first", "tokenFile": str(file)}
    assert credential(user, {}, {}).token == "first"
    file.write_text(" second\n")
    assert credential(user, {}, {}).token == "second"
    file.write_text("")
    with pytest.raises(AccessError, match="is empty"):
        credential({"tokenFile": str(file)}, {}, {})
