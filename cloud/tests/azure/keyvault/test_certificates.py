"""Certificates of a vault: made or imported, with the secret that holds the key; deleted and recovered together."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption, pkcs12

from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core.certificates import KeyMaterial, parse
from localcloud.testing.arm import VAULT, ArmWorld, error
from localcloud.testing.certificates import IssuedCertificate, issue

URI = "https://kv-idstack-local.vault.azure.net"
POLICY: dict[str, Any] = {
    "issuer": {"name": "Self"},
    "key_props": {"kty": "RSA", "key_size": 2048, "exportable": True},
    "x509_props": {"subject": "CN=disk", "validity_months": 6},
}


@pytest.fixture
def officer(world: ArmWorld) -> ServicePrincipal:
    world.create_vault()
    return world.principal(("Key Vault Certificates Officer", VAULT), ("Key Vault Secrets Officer", VAULT))


@pytest.fixture(scope="module")
def issued() -> IssuedCertificate:
    return issue("imported")


def made(world: ArmWorld, officer: ServicePrincipal, **changes: Any) -> httpx.Response:
    return world.vault("POST", "/certificates/one/create", {"policy": POLICY | changes}, caller=officer)


def secret(world: ArmWorld, officer: ServicePrincipal) -> dict[str, Any]:
    return dict(world.vault("GET", "/secrets/one", caller=officer).json())


def opened(value: str) -> tuple[RSAPrivateKey, x509.Certificate]:
    """Key and certificate in a secret's PKCS#12."""
    key, certificate, _ = pkcs12.load_key_and_certificates(base64.b64decode(value), None)
    assert isinstance(key, RSAPrivateKey)
    assert certificate is not None
    return key, certificate


def test_a_certificate_is_made_and_its_secret_has_the_key(world: ArmWorld, officer: ServicePrincipal) -> None:
    begun = made(world, officer)
    ended = world.vault("GET", "/certificates/one/pending", caller=officer).json()
    found = world.vault("GET", "/certificates/one", caller=officer).json()
    kept = secret(world, officer)

    assert (begun.status_code, begun.json()["status"]) == (202, "inProgress")
    assert (ended["status"], ended["target"]) == ("completed", f"{URI}/certificates/one")
    certificate = x509.load_der_x509_certificate(base64.b64decode(found["cer"]))
    assert certificate.subject.rfc4514_string() == "CN=disk"
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime == timedelta(days=180)
    assert (kept["id"], kept["contentType"]) == (found["sid"], "application/x-pkcs12")
    assert opened(kept["value"])[1] == certificate
    assert kept["attributes"]["exp"] == found["attributes"]["exp"]


def test_the_secret_is_pem_if_the_policy_says_so(world: ArmWorld, officer: ServicePrincipal) -> None:
    made(world, officer, secret_props={"contentType": "application/x-pem-file"}).raise_for_status()

    assert parse(secret(world, officer)["value"].encode()).chain[0].subject.rfc4514_string() == "CN=disk"


@pytest.mark.parametrize("form", ["PEM", "PEM in base64", "PKCS#12", "PKCS#12 with a password"])
def test_a_certificate_is_imported_in_each_form(
    world: ArmWorld, officer: ServicePrincipal, issued: IssuedCertificate, form: str
) -> None:
    pem = issued.private_key_pem + issued.certificate_pem
    key = parse(pem.encode())
    protected = pkcs12.serialize_key_and_certificates(
        b"one", key.private_key, key.chain[0], None, BestAvailableEncryption(b"word")
    )
    body = {
        "PEM": {"value": pem},
        "PEM in base64": {"value": base64.encodebytes(pem.encode()).decode()},
        "PKCS#12": {"value": base64.b64encode(_bare(key)).decode()},
        "PKCS#12 with a password": {"value": base64.b64encode(protected).decode(), "pwd": "word"},
    }[form]

    found = world.vault("POST", "/certificates/one/import", body, caller=officer).json()

    assert base64.b64decode(found["cer"]) == base64.b64decode("".join(issued.certificate_pem.splitlines()[1:-1]))
    kept, _ = opened(secret(world, officer)["value"])
    assert kept.private_numbers() == key.private_key.private_numbers()


def test_certificate_and_secret_are_deleted_recovered_and_purged_together(
    world: ArmWorld, officer: ServicePrincipal
) -> None:
    made(world, officer)
    world.vault("DELETE", "/certificates/one", caller=officer).raise_for_status()
    gone = [error(world.vault("GET", f"/{kind}/one", caller=officer))[1] for kind in ("certificates", "secrets")]
    deleted = world.vault("GET", "/deletedcertificates/one", caller=officer).json()
    taken = made(world, officer)
    world.vault("POST", "/deletedcertificates/one/recover", caller=officer).raise_for_status()
    [listed] = world.vault("GET", "/certificates", caller=officer).json()["value"]
    back = secret(world, officer)
    world.vault("DELETE", "/certificates/one", caller=officer)
    purged = world.vault("DELETE", "/deletedcertificates/one", caller=officer)

    assert gone == ["CertificateNotFound", "SecretNotFound"]
    assert deleted["recoveryId"] == f"{URI}/deletedcertificates/one"
    assert error(taken)[:2] == (409, "Conflict")
    assert listed["id"] == f"{URI}/certificates/one"
    assert back["contentType"] == "application/x-pkcs12"
    assert purged.status_code == 204
    assert made(world, officer).is_success


def _bare(key: KeyMaterial) -> bytes:
    return pkcs12.serialize_key_and_certificates(None, key.private_key, key.chain[0], None, NoEncryption())
