"""The node's metadata service: tokens for attached identities only, and the real one's refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import jwt
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import ClientAssertionCredential, ManagedIdentityCredential

from localcloud.azure.entra.api import app as entra
from localcloud.azure.imds.api import app
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.azure.tenant.resources import EXCHANGE
from localcloud.tests.hosts import Certificates, Serve

VAULT = "https://vault.azure.net"
GROUP = "/subscriptions/s/resourceGroups/g/providers"
SCALE_SET = f"{GROUP}/Microsoft.Compute/virtualMachineScaleSets/nodes"


def identity(azure: LocalAzure, name: str) -> ServicePrincipal:
    resource_id = f"{GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
    principal = azure.directory.create_managed_identity(resource_id, name)
    properties = {"principalId": principal.object_id, "clientId": principal.app_id}
    Resources(azure.store).put({"id": resource_id, "type": "x", "properties": properties})
    return principal


def attach(azure: LocalAzure, *principals: ServicePrincipal) -> None:
    attached: dict[str, Any] = {str(principal.resource_id): {} for principal in principals}
    scale_set: dict[str, Any] = {"id": SCALE_SET, "type": "Microsoft.Compute/virtualMachineScaleSets"}
    Resources(azure.store).put({**scale_set, "identity": {"userAssignedIdentities": attached}})


@pytest.fixture
def imds(azure: LocalAzure, serve_plain: Serve, monkeypatch: pytest.MonkeyPatch) -> str:
    base = serve_plain(app(azure))
    # azure-identity's own way to another metadata address.
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", base)
    return base


def ask(base: str, **parameters: str) -> httpx.Response:
    query = {"api-version": "2018-02-01", "resource": VAULT, **parameters}
    return httpx.get(f"{base}/metadata/identity/oauth2/token", params=query, headers={"Metadata": "true"})


def description(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error_description"]


def test_azure_identity_gets_a_vault_token_for_an_attached_identity(azure: LocalAzure, imds: str) -> None:
    principal = identity(azure, "addon")
    attach(azure, principal)

    token = ManagedIdentityCredential(client_id=principal.app_id).get_token(f"{VAULT}/.default")

    assert azure.tokens.verify(token.token, [VAULT]).object_id == principal.object_id


def test_an_identity_that_is_not_attached_is_not_found(azure: LocalAzure, imds: str) -> None:
    attach(azure, identity(azure, "addon"))
    stranger = identity(azure, "stranger")

    assert description(ask(imds, client_id=stranger.app_id)) == (400, "Identity not found")
    with pytest.raises(ClientAuthenticationError):
        ManagedIdentityCredential(client_id=stranger.app_id).get_token(f"{VAULT}/.default")


def test_a_machine_without_identities_finds_none(imds: str) -> None:
    assert description(ask(imds)) == (400, "Identity not found")


def test_an_identity_must_be_named_only_if_several_are_attached(azure: LocalAzure, imds: str) -> None:
    one, two = identity(azure, "one"), identity(azure, "two")
    attach(azure, one)
    assert ask(imds).json()["client_id"] == one.app_id

    attach(azure, one, two)
    assert description(ask(imds))[1].startswith("Multiple user assigned identities exist")
    assert ask(imds, msi_res_id=str(two.resource_id).upper()).json()["client_id"] == two.app_id
    assert ask(imds, object_id=one.object_id).json()["client_id"] == one.app_id


def test_a_managed_identity_is_the_credential_of_an_application(
    azure: LocalAzure, imds: str, serve: Serve, certificates: Certificates
) -> None:
    principal = identity(azure, "addon")
    attach(azure, principal)
    application = azure.directory.create_application("app")
    azure.directory.create_service_principal(application.app_id)
    trusted = {
        **{"id": "1", "name": "mi", "subject": principal.object_id, "audiences": [EXCHANGE]},
        "issuer": f"https://login.microsoftonline.com/{azure.tenant_id}/v2.0",
    }
    azure.directory.update(replace(application, federated=(trusted,)))

    def assertion() -> str:
        return str(ManagedIdentityCredential(client_id=principal.app_id).get_token(f"{EXCHANGE}/.default").token)

    claims = jwt.decode(assertion(), options={"verify_signature": False})
    with ClientAssertionCredential(
        azure.tenant_id,
        application.app_id,
        assertion,
        authority=serve(entra(azure)),
        disable_instance_discovery=True,
        connection_verify=str(certificates.ca_file),
    ) as credential:
        token = credential.get_token(f"{VAULT}/.default").token

    assert (claims["iss"], claims["sub"], claims["ver"]) == (trusted["issuer"], principal.object_id, "2.0")
    assert azure.tokens.verify(token, [VAULT]).client_id == application.app_id


def test_an_application_of_the_tenant_is_a_resource(azure: LocalAzure, imds: str) -> None:
    attach(azure, identity(azure, "addon"))
    application = azure.directory.create_application("app")
    azure.directory.create_service_principal(application.app_id)

    assert ask(imds, resource=f"api://{application.app_id}").status_code == 200
    assert ask(imds, resource=application.app_id).status_code == 200
    assert ask(imds, resource="api://nobody").status_code == 400
