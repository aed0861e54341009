"""Which certificates of a state are not registered at Entra ID."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509

from identity.azure.client import AzureClient
from identity.credentials.certificate import IssuedCertificate, issue, key_id
from localcloud.testing.arm import VAULT, ArmWorld
from localcloud.testing.azure import KeyCredential
from ops.recovery.settle import message
from ops.stack.state import StateResource

BEGIN = datetime(2026, 11, 21, 17, 13, 57, tzinfo=UTC)
PARENT = "urn:pulumi:dev::idstack::idstack:azure:EntraApplication::hc1-kms-entra"
SECRET = "kms-hc1-json"


def resource(kind: str, name: str, **properties: str) -> StateResource:
    urn = f"urn:pulumi:dev::idstack::idstack:azure:EntraApplication${kind}::hc1-kms-entra-{name}"
    return {"urn": urn, "type": kind, "custom": True, "parent": PARENT, "inputs": properties, "outputs": properties}


def state(client_id: str, *certificates: IssuedCertificate) -> list[StateResource]:
    schedule = resource(
        "idstack:index:RenewalSchedule", "schedule", clientId=client_id, vaultId=VAULT, secretName=SECRET
    )
    found = [
        resource(
            "idstack:index:Certificate",
            f"certificate-{slot}",
            thumbprint=certificate.thumbprint,
            keyId=key_id(certificate.thumbprint),
        )
        for slot, certificate in zip("ab", certificates, strict=True)
    ]
    return [schedule, *found]


def test_what_is_not_registered_is_named_whatever_the_vault_shows(world: ArmWorld, azure: AzureClient) -> None:
    world.create_vault()
    owner = world.cloud.directory.create_application("kms", owners=(world.deployer.object_id,))
    first, second = (
        issue("kms", not_before=BEGIN + timedelta(days=day), lifetime=timedelta(days=90)) for day in (0, 1)
    )
    resources = state(owner.app_id, first, second)
    heading, *lines = message(azure, resources)
    assert heading.endswith("The next run replaces them, or asks about one that the vault shows:")
    assert lines == [
        f"  hc1-kms-entra-certificate-a: {first.thumbprint}",
        f"  hc1-kms-entra-certificate-b: {second.thumbprint}",
    ]

    key = KeyCredential.of(x509.load_pem_x509_certificate(first.certificate_pem.encode()))
    world.cloud.directory.set_key_credentials(owner.object_id, [key])
    world.call(
        "PUT", f"{VAULT}/secrets/{SECRET}", {"tags": {"thumbprint": second.thumbprint}, "properties": {"value": "x"}}
    )
    _, *lines = message(azure, resources)
    assert lines == [
        f"  hc1-kms-entra-certificate-a: {first.thumbprint}",  # another key id is another registration
        f"  hc1-kms-entra-certificate-b: {second.thumbprint}",
    ]


def test_of_an_application_that_is_gone_nothing_is_said(azure: AzureClient) -> None:
    certificate = issue("kms", not_before=BEGIN, lifetime=timedelta(days=90))
    resources = state("6f2c1e7a-0000-4000-8000-00000000aaaa", certificate, certificate)
    assert message(azure, resources) == []
