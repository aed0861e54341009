"""The managed-identity data plane: documents that sign in, kept until they are due."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from azure.identity import CertificateCredential
from cryptography import x509

from localcloud.azure.entra.api import app
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.msi.issuer import issue_credential
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core import clock
from localcloud.core.certificates import parse, thumbprint
from localcloud.core.clouds import LOCAL_TENANT_ID
from localcloud.testing.hosts import Certificates, Serve

RESOURCE_ID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/registry"


@pytest.fixture
def identity(azure: LocalAzure) -> ServicePrincipal:
    principal = azure.directory.create_managed_identity(RESOURCE_ID, "registry")
    properties = {"principalId": principal.object_id, "clientId": principal.app_id}
    Resources(azure.store).put({"id": RESOURCE_ID, "type": "x", "properties": properties})
    return principal


def bundle(text: str) -> bytes:
    """Key and certificate in a document, as PEM."""
    return base64.b64decode(json.loads(text)["client_secret"], validate=True)


def test_an_issued_document_is_complete_and_signs_in_as_the_identity(
    azure: LocalAzure, identity: ServicePrincipal, serve: Serve, certificates: Certificates
) -> None:
    here = replace(azure, authority_host=f"{serve(app(azure))}/")

    text = issue_credential(here, RESOURCE_ID.lower())

    written = json.loads(text)
    certificate = x509.load_pem_x509_certificates(bundle(text))[0]
    dates = [datetime.fromisoformat(written[key]) for key in ("not_before", "renew_after", "cannot_renew_after")]
    client = CertificateCredential(
        LOCAL_TENANT_ID,
        identity.app_id,
        certificate_data=bundle(text),
        authority=written["authentication_endpoint"],
        disable_instance_discovery=True,
        connection_verify=str(certificates.ca_file),
    )
    token = client.get_token("https://management.azure.com/.default").token
    assert azure.tokens.verify(token, ["https://management.azure.com"]).object_id == identity.object_id
    assert {key: written[key] for key in ("tenant_id", "client_id", "object_id", "resource_id")} == {
        "tenant_id": LOCAL_TENANT_ID,
        "client_id": identity.app_id,
        "object_id": identity.object_id,
        "resource_id": RESOURCE_ID,
    }
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert (dates, datetime.fromisoformat(written["not_after"])) == (
        [start, start + (end - start) / 2, start + (end - start) * 3 / 4],
        end,
    )


def test_the_same_document_is_returned_until_it_is_due(azure: LocalAzure, identity: ServicePrincipal) -> None:
    first = issue_credential(azure, RESOURCE_ID)
    assert issue_credential(azure, RESOURCE_ID) == first

    with clock.moved_ahead(timedelta(days=50)):
        renewed = issue_credential(azure, RESOURCE_ID)

    assert json.loads(renewed)["not_before"] > json.loads(first)["not_before"]
    registered = azure.directory.service_principal(identity.object_id)
    assert registered is not None
    assert {key_credential.thumbprint for key_credential in registered.key_credentials} == {
        thumbprint(parse(bundle(text)).certificate) for text in (first, renewed)
    }, "a reader of the old document can still sign in"


def test_a_new_document_can_be_forced_and_its_key_is_stored_sealed(
    azure: LocalAzure, identity: ServicePrincipal
) -> None:
    first = issue_credential(azure, RESOURCE_ID)
    second = issue_credential(azure, RESOURCE_ID, force_new=True)

    assert bundle(first) != bundle(second)
    stored = str(azure.store.items("msi-credential"))
    assert "client_secret" not in stored
    assert "PRIVATE KEY" not in stored
