"""Which certificates of a state are not registered at Entra ID."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509

from identity.azure.client import AzureClient
from identity.credentials.certificate import IssuedCertificate, issue, key_id
from localcloud.testing.arm import ArmWorld
from localcloud.testing.azure import KeyCredential
from ops.recovery import settle
from ops.recovery.settle import withdrawn_since
from ops.stack.engine import Engine

FIRST, SECOND = (
    issue("kms", not_before=datetime(2026, 11, day, tzinfo=UTC), lifetime=timedelta(days=90)) for day in (21, 22)
)
KIND = "idstack:index:Certificate"


@pytest.fixture(autouse=True)
def _signed_in(azure: AzureClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "deployer", lambda _: nullcontext(azure))


def state(application: str) -> Any:
    return [
        {
            "urn": f"urn:pulumi:dev::idstack::{KIND}::certificate-{slot}",
            **{"type": KIND, "custom": True, "inputs": {"applicationId": f"/applications/{application}"}},
            "outputs": {"thumbprint": certificate.thumbprint, "keyId": key_id(certificate.thumbprint)},
        }
        for slot, certificate in zip("ab", (FIRST, SECOND), strict=True)
    ]


def registration(certificate: IssuedCertificate) -> KeyCredential:
    return KeyCredential.of(x509.load_pem_x509_certificate(certificate.certificate_pem.encode()))


def test_what_is_not_registered_is_named(world: ArmWorld) -> None:
    owner = world.cloud.directory.create_application("kms", owners=(world.deployer.object_id,))
    assert len(withdrawn_since(Engine("dev"), state(owner.object_id))) == 3

    own = replace(registration(FIRST), key_id=key_id(FIRST.thumbprint).upper())
    # Under another key id it is another registration.
    world.cloud.directory.set_key_credentials(owner.object_id, [own, registration(SECOND)])

    heading, *lines = withdrawn_since(Engine("dev"), state(owner.object_id))
    assert heading.endswith("The next run replaces them, or asks about one that the vault shows:")
    assert lines == [f"  certificate-b: {SECOND.thumbprint}"]
    assert withdrawn_since(Engine("dev"), state("6f2c1e7a-0000-4000-8000-00000000aaaa")) == [], "it is gone"
