"""Managed identities of the node: tokens by the metadata service, and credential documents of the MSI data plane."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import datetime, timedelta

import httpx
import jwt
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CertificateCredential, ClientAssertionCredential, ManagedIdentityCredential
from cryptography import x509

from localcloud.azure.entra.api import app as entra
from localcloud.azure.imds.api import app
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.msi.issuer import issue_credential
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.azure.tenant.tokens import EXCHANGE
from localcloud.core import clock
from localcloud.core.certificates import parse, thumbprint
from localcloud.core.clouds import LOCAL_TENANT_ID
from localcloud.testing.arm import ArmWorld
from localcloud.testing.hosts import Certificates, Serve

VAULT = "https://vault.azure.net"


@pytest.fixture
def imds(world: ArmWorld, serve_plain: Serve, monkeypatch: pytest.MonkeyPatch) -> str:
    base = serve_plain(app(world.cloud))
    # azure-identity's own way to another metadata address.
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", base)
    return base


def ask(base: str, **parameters: str) -> httpx.Response:
    query = {"api-version": "2018-02-01", "resource": VAULT, **parameters}
    return httpx.get(f"{base}/metadata/identity/oauth2/token", params=query, headers={"Metadata": "true"})


def description(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error_description"]


def test_azure_identity_gets_a_vault_token_for_an_attached_identity(world: ArmWorld, imds: str) -> None:
    principal = world.managed_identity("addon")
    world.attach(principal)

    token = ManagedIdentityCredential(client_id=principal.app_id).get_token(f"{VAULT}/.default")

    assert world.cloud.tokens.verify(token.token, [VAULT]).object_id == principal.object_id


def test_an_identity_that_is_not_attached_is_not_found(world: ArmWorld, imds: str) -> None:
    world.attach(world.managed_identity("addon"))
    stranger = world.managed_identity("stranger")

    assert description(ask(imds, client_id=stranger.app_id)) == (400, "Identity not found")
    with pytest.raises(ClientAuthenticationError):
        ManagedIdentityCredential(client_id=stranger.app_id).get_token(f"{VAULT}/.default")


def test_a_machine_without_identities_finds_none(imds: str) -> None:
    assert description(ask(imds)) == (400, "Identity not found")


def test_an_identity_must_be_named_only_if_several_are_attached(world: ArmWorld, imds: str) -> None:
    one, two = world.managed_identity("one"), world.managed_identity("two")
    world.attach(one)
    assert ask(imds).json()["client_id"] == one.app_id

    world.attach(one, two)
    assert description(ask(imds))[1].startswith("Multiple user assigned identities exist")
    assert ask(imds, msi_res_id=str(two.resource_id).upper()).json()["client_id"] == two.app_id
    assert ask(imds, object_id=one.object_id).json()["client_id"] == one.app_id


def test_a_managed_identity_is_the_credential_of_an_application(
    world: ArmWorld, imds: str, serve: Serve, certificates: Certificates
) -> None:
    principal = world.managed_identity("addon")
    world.attach(principal)
    application = world.cloud.directory.create_application("app")
    world.cloud.directory.create_service_principal(application.app_id)
    trusted = {
        **{"id": "1", "name": "mi", "subject": principal.object_id, "audiences": [EXCHANGE]},
        "issuer": f"https://login.microsoftonline.com/{world.cloud.tenant_id}/v2.0",
    }
    world.cloud.directory.update(replace(application, federated=(trusted,)))

    def assertion() -> str:
        return str(ManagedIdentityCredential(client_id=principal.app_id).get_token(f"{EXCHANGE}/.default").token)

    claims = jwt.decode(assertion(), options={"verify_signature": False})
    with ClientAssertionCredential(
        world.cloud.tenant_id,
        application.app_id,
        assertion,
        authority=serve(entra(world.cloud)),
        disable_instance_discovery=True,
        connection_verify=str(certificates.ca_file),
    ) as credential:
        token = credential.get_token(f"{VAULT}/.default").token

    assert (claims["iss"], claims["sub"], claims["ver"]) == (trusted["issuer"], principal.object_id, "2.0")
    assert world.cloud.tokens.verify(token, [VAULT]).client_id == application.app_id


def test_an_application_of_the_tenant_is_a_resource(world: ArmWorld, imds: str) -> None:
    world.attach(world.managed_identity("addon"))
    application = world.cloud.directory.create_application("app")
    world.cloud.directory.create_service_principal(application.app_id)

    assert ask(imds, resource=f"api://{application.app_id}").status_code == 200
    assert ask(imds, resource=application.app_id).status_code == 200
    assert ask(imds, resource="api://nobody").status_code == 400


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
    here = replace(azure, authority_host=f"{serve(entra(azure))}/")

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
