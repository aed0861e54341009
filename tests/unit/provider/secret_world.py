"""A credential's secret as a program writes it, and the document that the vault hands out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate, issue
from localcloud.testing.arm import VAULT, ArmWorld
from plugin import Props
from provider import keys
from provider.credential_secret import CredentialSecretResource
from tests.unit.provider.conftest import ADDRESS, SECRET

URN = "urn:pulumi:dev::idstack::idstack:index:CredentialSecret::hc1-ingress-credential-secret"
ID = f"{VAULT}/secrets/{SECRET}"
CLIENT = "6f2c1e7a-0000-4000-8000-00000000aaaa"

resource = CredentialSecretResource()


def issued(age: timedelta = timedelta(minutes=5)) -> IssuedCertificate:
    """A certificate whose key the plugin has in memory."""
    made = issue("ingress-hc1", not_before=datetime.now(UTC) - age, lifetime=timedelta(days=90))
    keys.remember(made)
    return made


def inputs(certificate: IssuedCertificate, generation: str = "a1", **changes: Any) -> Props:
    """The inputs of a program, after Check."""
    program = {
        **ADDRESS,
        "tags": {"environment": "test"},
        "thumbprint": certificate.thumbprint,
        "generation": generation,
        "authorityHost": "https://login.microsoftonline.com/",
        "clientId": CLIENT,
        "objectId": "6f2c1e7a-0000-4000-8000-00000000bbbb",
        "notBefore": rfc3339.render(certificate.not_before),
        "notAfter": rfc3339.render(certificate.not_after),
        "renewAfter": rfc3339.render(certificate.not_after - timedelta(days=45)),
        "cannotRenewAfter": rfc3339.render(certificate.not_after),
        "provenAt": rfc3339.render(datetime.now(UTC)),
        **changes,
    }
    return checked({name: value for name, value in program.items() if value is not None})


def checked(program: Props, old: Props | None = None) -> Props:
    found = resource.check(URN, old, program)
    assert not found.failures
    return found.inputs


def created(wanted: Props) -> Props:
    return resource.create(URN, wanted, preview=False).state


def value(world: ArmWorld, version: str = "") -> dict[str, Any]:
    """The document that the vault hands out."""
    document: dict[str, Any] = json.loads(world.vault("GET", f"/secrets/{SECRET}/{version}").json()["value"])
    return document
