"""Certificates of a vault: made or imported, with the secret that holds the key; deleted and recovered together."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import httpx
import pytest
from azure.keyvault.keys.crypto import CryptographyClient, EncryptionAlgorithm
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption, pkcs12

from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core.certificates import KeyMaterial, parse
from localcloud.testing.arm import VAULT, ArmWorld, error
from localcloud.testing.certificates import IssuedCertificate, issue
from tests.azure.keyvault.conftest import PrincipalCredential, VaultClients

URI = "https://kv-idstack-local.vault.azure.net"
POLICY: dict[str, Any] = {
    "issuer": {"name": "Self"},
    "key_props": {"kty": "RSA", "exportable": True},
    "x509_props": {
        "subject": "CN=disk,O=idstack",
        "sans": {"dns_names": ["disk.example"], "upns": ["a@b"]},
        "validity_months": 6,
    },
}


@pytest.fixture
def administrator(world: ArmWorld) -> ServicePrincipal:
    world.create_vault()
    return world.principal(("Key Vault Administrator", VAULT))


@pytest.fixture
def ask(world: ArmWorld, administrator: ServicePrincipal) -> Any:
    def asked(method: str, path: str, body: object = None) -> Any:
        return world.vault(method, path, body, caller=administrator)

    return asked


@pytest.fixture(scope="module")
def issued() -> IssuedCertificate:
    return issue("imported")


def made(ask: Any, **changes: Any) -> httpx.Response:
    answer: httpx.Response = ask("POST", "/certificates/one/create", {"policy": POLICY | changes, "tags": {"a": "b"}})
    return answer


def secret(ask: Any) -> dict[str, Any]:
    return dict(ask("GET", "/secrets/one").json())


def opened(value: str) -> tuple[RSAPrivateKey, x509.Certificate]:
    """Key and certificate in a secret's PKCS#12."""
    key, certificate, _ = pkcs12.load_key_and_certificates(base64.b64decode(value), None)
    assert isinstance(key, RSAPrivateKey)
    assert certificate is not None
    return key, certificate


def test_a_certificate_is_made_and_its_secret_has_the_key(ask: Any) -> None:
    begun = made(ask)
    ended = ask("GET", "/certificates/one/pending").json()
    found = ask("GET", "/certificates/one").json()
    kept = secret(ask)

    assert (begun.status_code, begun.json()["status"]) == (202, "inProgress")
    assert (ended["status"], ended["target"]) == ("completed", f"{URI}/certificates/one")
    certificate = x509.load_der_x509_certificate(base64.b64decode(found["cer"]))
    assert found["subject"] == "CN=disk,O=idstack"
    assert found["tags"] == {"a": "b"}
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["disk.example"]
    assert certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_encipherment
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime == timedelta(days=180)
    assert (kept["id"], kept["contentType"]) == (found["sid"], "application/x-pkcs12")
    assert opened(kept["value"])[1] == certificate
    assert kept["attributes"]["exp"] == found["attributes"]["exp"]


def test_the_secret_is_pem_if_the_policy_says_so(ask: Any) -> None:
    made(ask, secret_props={"contentType": "application/x-pem-file"}).raise_for_status()

    assert parse(secret(ask)["value"].encode()).chain[0].subject.rfc4514_string() == "CN=disk,O=idstack"


@pytest.mark.parametrize("form", ["PEM", "PEM in base64", "PKCS#12", "PKCS#12 with a password"])
def test_a_certificate_is_imported_in_each_form(ask: Any, issued: IssuedCertificate, form: str) -> None:
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

    found = ask("POST", "/certificates/one/import", body).json()

    assert base64.b64decode(found["cer"]) == base64.b64decode("".join(issued.certificate_pem.splitlines()[1:-1]))
    kept, _ = opened(secret(ask)["value"])
    assert kept.private_numbers() == key.private_key.private_numbers()


def test_certificate_and_secret_are_deleted_recovered_and_purged_together(ask: Any) -> None:
    made(ask)
    ask("DELETE", "/certificates/one").raise_for_status()
    gone = [error(ask("GET", f"/{kind}/one"))[1] for kind in ("certificates", "secrets")]
    deleted = ask("GET", "/deletedcertificates/one").json()
    taken = made(ask)
    ask("POST", "/deletedcertificates/one/recover").raise_for_status()
    [listed] = ask("GET", "/certificates").json()["value"]
    back = secret(ask)
    ask("DELETE", "/certificates/one")
    purged = ask("DELETE", "/deletedcertificates/one")

    assert gone == ["CertificateNotFound", "SecretNotFound"]
    assert deleted["recoveryId"] == f"{URI}/deletedcertificates/one"
    assert error(taken)[:2] == (409, "Conflict")
    assert listed["id"] == f"{URI}/certificates/one"
    assert back["contentType"] == "application/x-pkcs12"
    assert purged.status_code == 204
    assert made(ask).is_success


def _bare(key: KeyMaterial) -> bytes:
    return pkcs12.serialize_key_and_certificates(None, key.private_key, key.chain[0], None, NoEncryption())


def test_versions_and_policy_are_read(ask: Any) -> None:
    for _ in range(2):
        made(ask)
    versions = ask("GET", "/certificates/one/versions").json()["value"]
    policy = ask("GET", "/certificates/one/policy").json()

    assert len({version["id"] for version in versions}) == 2
    assert policy["key_props"] == {"exportable": True, "kty": "RSA", "key_size": 2048, "reuse_key": False}
    assert (policy["issuer"]["name"], policy["secret_props"]["contentType"]) == ("Self", "application/x-pkcs12")
    assert policy["lifetime_actions"]
    assert error(ask("GET", "/certificates/two/policy"))[1] == "CertificateNotFound"


def test_there_are_no_contacts_and_no_issuers(ask: Any) -> None:
    assert ask("GET", "/certificates/contacts").json()["contacts"] == []
    assert ask("GET", "/certificates/issuers").json()["value"] == []


def test_secret_and_key_say_that_they_are_a_certificates(ask: Any) -> None:
    made(ask)
    ask("PUT", "/secrets/plain", {"value": "v"})
    listed = {entry["id"].rpartition("/")[2]: entry for entry in ask("GET", "/secrets").json()["value"]}
    secret, key = ask("GET", "/secrets/one").json(), ask("GET", "/keys/one").json()
    [of_keys] = ask("GET", "/keys").json()["value"]

    assert (listed["one"].get("managed"), listed["plain"].get("managed")) == (True, None)
    assert (secret["managed"], secret["kid"]) == (True, key["key"]["kid"])
    assert (key["managed"], of_keys["managed"]) == (True, True)
    assert ask("GET", "/keys/one/versions").json()["value"][0]["kid"] == secret["kid"]


def test_the_key_decrypts_what_the_certificate_encrypts(
    world: ArmWorld, ask: Any, clients: VaultClients, administrator: ServicePrincipal
) -> None:
    made(ask)
    key = clients.keys(administrator).get_key("one")
    with CryptographyClient(
        key,
        PrincipalCredential(world, administrator),
        verify_challenge_resource=False,
        connection_verify=str(clients.ca_file),
    ) as cryptography:
        encrypted = cryptography.encrypt(EncryptionAlgorithm.rsa1_5, b"text")
    value = base64.urlsafe_b64encode(encrypted.ciphertext).rstrip(b"=").decode()

    answer = ask("POST", "/keys/one/decrypt", {"alg": "RSA1_5", "value": value}).json()

    assert base64.urlsafe_b64decode(f"{answer['value']}==") == b"text"


def test_the_secret_is_written_and_deleted_with_the_certificate_alone(world: ArmWorld, ask: Any) -> None:
    made(ask)
    by_arm = world.call("PUT", f"{VAULT}/secrets/one", {"properties": {"value": "v"}})

    assert error(ask("PUT", "/secrets/one", {"value": "v"}))[:2] == (403, "Forbidden")
    assert error(ask("DELETE", "/secrets/one"))[:2] == (403, "Forbidden")
    assert error(by_arm)[:2] == (403, "Forbidden")
    ask("DELETE", "/certificates/one")
    assert ask("GET", "/deletedsecrets").json()["value"] == []
    assert [certificate["subject"] for certificate in ask("GET", "/deletedcertificates").json()["value"]] == [
        "CN=disk,O=idstack"
    ]
    assert error(ask("POST", "/deletedsecrets/one/recover"))[1] == "SecretNotFound"


def test_the_first_version_may_ask_for_its_key_to_be_used_again(ask: Any) -> None:
    """The default policy of the Azure CLI asks for it."""
    policy = {**POLICY, "key_props": {"exportable": True, "kty": "RSA", "key_size": 2048, "reuse_key": True}}
    first = ask("POST", "/certificates/three/create", {"policy": policy})
    second = ask("POST", "/certificates/three/create", {"policy": policy})

    assert first.is_success, first.text
    assert ask("GET", "/certificates/three/policy").json()["key_props"]["reuse_key"] is True
    assert error(second)[:2] == (501, "NotEmulated")


@pytest.mark.parametrize(
    ("changed", "code", "named"),
    [
        ({"issuer": {"name": "DigiCert"}}, 501, "the issuer DigiCert"),
        ({"key_props": {"exportable": False}}, 501, "cannot be exported"),
        *(({"key_props": {"kty": kind}}, 501, f"the kind {kind}") for kind in ("RSA-HSM", "EC")),
        ({"key_props": {"crv": "P-256", "kty": "EC"}}, 501, "the kind EC"),
        ({"key_props": {"key_size": 1024}}, 400, "policy.key_props"),
        ({"x509_props": {"colour": "red"}}, 400, "policy.x509_props.colour"),
        *(
            ({"x509_props": {"subject": "CN=disk", "sans": sans}}, 400, "policy.x509_props.sans")
            for sans in ({"dns_names": 7}, {"dns_names": ["ä"]}, {"emails": "ä"}, {"upns": ["a" * 300]})
        ),
    ],
)
def test_a_policy_that_no_certificate_can_have_is_refused(
    ask: Any, changed: dict[str, Any], code: int, named: str
) -> None:
    refused = ask("POST", "/certificates/two/create", {"policy": {**POLICY, **changed}})

    assert error(refused)[:2] == (code, {400: "BadParameter", 501: "NotEmulated"}[code])
    assert named in refused.text


def test_a_key_keeps_what_it_was_made_with(ask: Any) -> None:
    body = {
        "kty": "RSA",
        "key_ops": ["encrypt"],
        "tags": {"a": "b"},
        "attributes": {"enabled": True, "exp": 4102444800},
    }
    made = ask("POST", "/keys/etcd/create", body).json()

    assert (made["key"]["key_ops"], made["tags"], made["attributes"]["exp"]) == (["encrypt"], {"a": "b"}, 4102444800)
    policy = ask("GET", "/keys/etcd/rotationpolicy").json()
    assert policy["lifetimeActions"] == [{"trigger": {"timeBeforeExpiry": "P30D"}, "action": {"type": "Notify"}}]
    assert error(ask("GET", "/keys/absent/rotationpolicy"))[1] == "KeyNotFound"
