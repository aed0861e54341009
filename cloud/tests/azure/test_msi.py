"""The managed-identity data plane: documents that sign in, kept until they are due."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from azure.identity import CertificateCredential
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from identity.credentials.document import Credential, decode, validate
from localcloud.azure.entra.api import app
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.msi.issuer import UnknownIdentityError, issue_credential
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core import clock
from localcloud.core.clouds import LOCAL_TENANT_ID
from localcloud.testing.hosts import Certificates, Serve

RESOURCE_ID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/registry"


@pytest.fixture
def identity(azure: LocalAzure) -> ServicePrincipal:
    principal = azure.directory.create_managed_identity(RESOURCE_ID, "registry")
    properties = {"principalId": principal.object_id, "clientId": principal.app_id}
    Resources(azure.store).put({"id": RESOURCE_ID, "type": "x", "properties": properties})
    return principal


def sign_in(credential: Credential, ca_file: str) -> str:
    key = credential.key_material.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    client = CertificateCredential(
        credential.tenant_id,
        credential.client_id,
        certificate_data=key + credential.certificate.public_bytes(Encoding.PEM),
        authority=credential.authority_host,
        disable_instance_discovery=True,
        connection_verify=ca_file,
    )
    return client.get_token("https://management.azure.com/.default").token


def test_an_issued_document_is_valid_and_signs_in_as_the_identity(
    azure: LocalAzure, identity: ServicePrincipal, serve: Serve, certificates: Certificates
) -> None:
    here = replace(azure, authority_host=f"{serve(app(azure))}/")

    text = issue_credential(here, RESOURCE_ID.lower())

    credential = validate(
        text, now=datetime.now(UTC), expected_tenant=LOCAL_TENANT_ID, expected_client_id=identity.app_id
    )
    written = json.loads(text)
    assert (written["object_id"], written["resource_id"]) == (identity.object_id, RESOURCE_ID)
    token = sign_in(credential, str(certificates.ca_file))
    assert azure.tokens.verify(token, ["https://management.azure.com"]).object_id == identity.object_id


def test_the_same_document_is_returned_until_it_is_due(azure: LocalAzure, identity: ServicePrincipal) -> None:
    first = issue_credential(azure, RESOURCE_ID)
    assert issue_credential(azure, RESOURCE_ID) == first

    with clock.moved_ahead(timedelta(days=50)):
        renewed = issue_credential(azure, RESOURCE_ID)

    assert decode(renewed).not_before > decode(first).not_before
    registered = azure.directory.service_principal(identity.object_id)
    assert registered is not None
    assert {key_credential.thumbprint for key_credential in registered.key_credentials} == {
        decode(first).thumbprint,
        decode(renewed).thumbprint,
    }, "a reader of the old document can still sign in"


def test_a_new_document_can_be_forced_and_its_key_is_stored_sealed(
    azure: LocalAzure, identity: ServicePrincipal
) -> None:
    first = issue_credential(azure, RESOURCE_ID)
    second = issue_credential(azure, RESOURCE_ID, force_new=True)

    assert decode(first).thumbprint != decode(second).thumbprint
    stored = str(azure.store.items("msi-credential"))
    assert "client_secret" not in stored
    assert "PRIVATE KEY" not in stored


def test_an_unknown_identity_gets_nothing(azure: LocalAzure) -> None:
    with pytest.raises(UnknownIdentityError, match="registry"):
        issue_credential(azure, RESOURCE_ID)
