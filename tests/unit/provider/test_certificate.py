"""`CertificateResource`: what is issued, where its key is, and when it is replaced."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from identity.clouds import LOCAL_TENANT_ID
from identity.credentials.certificate import key_id
from identity.plugin_schema import SCHEMA
from localcloud.testing.arm import ArmWorld
from localcloud.testing.azure import KeyCredential, ServicePrincipal
from plugin import UNKNOWN, PluginError, PropertyChange, Props
from provider import keys
from provider.certificate import CertificateResource
from tests.unit.provider.conftest import SignIn, refused_inputs

URN = "urn:pulumi:dev::idstack::idstack:index:Certificate::hc1-ingress-certificate-a"
INPUTS = {
    "commonName": "hc1-ingress",
    "keySize": 2048,
    "lifetimeDays": 90,
    "generation": 1,
    "notBefore": "2026-01-31T09:25:15Z",
    "cloud": "local",
    "tenantId": LOCAL_TENANT_ID,
    "applicationId": "/applications/6f2c1e7a-0000-4000-8000-00000000cccc",
    "schema": SCHEMA,
}

resource = CertificateResource()


def issued(**changes: Any) -> Props:
    """The state after `create`."""
    return resource.create(URN, {**INPUTS, **changes}, preview=False).state


def failures(**changes: Any) -> list[tuple[str, str]]:
    return [(failure.property, failure.reason) for failure in resource.check(URN, None, {**INPUTS, **changes}).failures]


def test_the_state_has_the_inputs_and_the_certificate_and_memory_its_key() -> None:
    created = resource.create(URN, INPUTS, preview=False)
    state = created.state
    certificate = x509.load_pem_x509_certificate(state["certificatePem"].encode())
    assert certificate.not_valid_before_utc == datetime(2026, 1, 31, 9, 25, 15, tzinfo=UTC), "the skew is in notBefore"
    assert certificate.not_valid_after_utc == datetime(2026, 5, 1, 9, 25, 15, tzinfo=UTC)
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "hc1-ingress"
    thumbprint = certificate.fingerprint(hashes.SHA1()).hex().upper()  # noqa: S303
    derived = {"thumbprint": thumbprint, "keyId": key_id(thumbprint), "notAfter": "2026-05-01T09:25:15Z"}
    assert state == {**INPUTS, "certificatePem": state["certificatePem"], **derived}
    assert (created.id, uuid.UUID(state["keyId"]).version) == (thumbprint, 5)
    kept = keys.find(thumbprint)
    assert kept is not None
    assert not any(line in str(state) for line in kept.private_key_pem.splitlines()[1:-1])


def test_rsa_keys_of_2048_3072_and_4096_bits_are_accepted() -> None:
    assert [failures(keySize=size) for size in (2048, 3072, 4096)] == [[]] * 3
    state = issued(keySize=3072)
    kept = keys.find(state["thumbprint"])
    assert kept is not None
    key = load_pem_private_key(kept.private_key_pem.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 3072
    assert key.public_key() == x509.load_pem_x509_certificate(state["certificatePem"].encode()).public_key()


def test_a_preview_knows_the_end_alone_and_that_of_known_dates() -> None:
    derived = {"certificatePem": UNKNOWN, "thumbprint": UNKNOWN, "keyId": UNKNOWN}
    unknown = {**INPUTS, "notBefore": UNKNOWN, "generation": UNKNOWN}
    for inputs, end in ((INPUTS, "2026-05-01T09:25:15Z"), (unknown, UNKNOWN)):
        assert not resource.check(URN, None, inputs).failures
        assert resource.create(URN, inputs, preview=True).state == {**inputs, **derived, "notAfter": end}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("commonName", "other"),
        ("keySize", 4096),
        ("lifetimeDays", 30),
        ("generation", 2),
        ("notBefore", "2026-03-18T09:25:15Z"),
        ("notBefore", UNKNOWN),
    ],
)
def test_every_change_of_the_issue_replaces_and_deletes_first(name: str, value: Any) -> None:
    diff = resource.diff(URN, "id", INPUTS, INPUTS, {**INPUTS, name: value})
    assert diff.changes == {name: PropertyChange("update", replace=True)}
    assert diff.delete_before_replace


def test_other_settings_wait_for_the_next_issue() -> None:
    settings = {"commonName": "hc1-ingress-2", "keySize": 4096, "lifetimeDays": 30}
    assert resource.check(URN, INPUTS, {**INPUTS, **settings}).inputs == INPUTS, "the one in use keeps its registration"
    assert resource.check(URN, INPUTS, {**INPUTS, "keySize": 1024}).failures, "though it waits"

    next_issue = {**INPUTS, **settings, "generation": 2, "notBefore": "2026-03-18T09:25:15Z"}
    assert resource.check(URN, INPUTS, next_issue).inputs == next_issue


@refused_inputs("Certificate")
def test_wrong_inputs_are_refused_by_name(name: str, reason: str, value: Any) -> None:
    assert failures(**{name: value}) == [(name, reason)]


def test_another_owner_is_noted_in_place() -> None:
    new = {**INPUTS, "applicationId": "/applications/another"}
    assert resource.diff(URN, "id", INPUTS, INPUTS, new).changes == {"applicationId": PropertyChange("update")}
    state = issued()
    assert resource.update(URN, "id", INPUTS, state, new, preview=False) == {**state, **new}


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not pause between the reads after a removal."""
    monkeypatch.setattr("provider.certificate.pause", lambda _: None)


def registered(world: ArmWorld, owner: ServicePrincipal, *certificates: Props) -> tuple[str, str]:
    """An application of the deployer with the certificates; its path, and its object id."""
    application = world.cloud.directory.create_application("ingress-hc1", owners=[owner.object_id])
    credentials = [
        replace(
            KeyCredential.of(x509.load_pem_x509_certificate(certificate["certificatePem"].encode())),
            key_id=certificate["keyId"],
        )
        for certificate in certificates
    ]
    world.cloud.directory.set_key_credentials(application.object_id, credentials)
    return f"/applications/{application.object_id}", application.object_id


def key_ids(world: ArmWorld, object_id: str) -> list[str]:
    found = world.cloud.directory.application(object_id)
    assert found is not None
    return [key_credential.key_id for key_credential in found.key_credentials]


@pytest.mark.parametrize("number", [0, 1])
def test_deleting_it_removes_a_registration_that_nobody_heard_of(
    in_azure: ArmWorld, deployer: ServicePrincipal, number: int
) -> None:
    """The only one of its application, too: the first registration may be the one that was interrupted."""
    lost, others = issued(), [issued() for _ in range(number)]
    path, object_id = registered(in_azure, deployer, lost, *others)

    for _ in range(2):
        resource.delete(URN, lost["thumbprint"], {**INPUTS, "applicationId": path}, lost)
        assert key_ids(in_azure, object_id) == [other["keyId"] for other in others]
    assert keys.find(lost["thumbprint"]) is None


def test_deleting_it_after_its_application_is_no_error(in_azure: ArmWorld) -> None:
    resource.delete(URN, "id", INPUTS, issued())


def test_deleting_it_without_rights_says_what_could_not_be_seen(in_azure: ArmWorld, sign_in: SignIn) -> None:
    sign_in(in_azure.principal())
    with pytest.raises(PluginError, match=r"whether the certificate id is still registered cannot be seen: .*403"):
        resource.delete(URN, "id", INPUTS, issued())
