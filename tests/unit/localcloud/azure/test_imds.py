"""The node's metadata service: tokens for attached identities only, and the real one's refusals."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import ManagedIdentityCredential

from localcloud.azure.imds.api import app
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.objects import ServicePrincipal
from tests.unit.hosts import Serve

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


def ask(base: str, *, metadata: str = "true", **parameters: str) -> httpx.Response:
    query = {"api-version": "2018-02-01", "resource": VAULT, **parameters}
    return httpx.get(f"{base}/metadata/identity/oauth2/token", params=query, headers={"Metadata": metadata})


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


def test_without_the_metadata_header_there_is_no_token(azure: LocalAzure, imds: str) -> None:
    attach(azure, identity(azure, "addon"))

    assert description(ask(imds, metadata="")) == (400, "Required metadata header not specified")


def test_an_identity_must_be_named_only_if_several_are_attached(azure: LocalAzure, imds: str) -> None:
    one, two = identity(azure, "one"), identity(azure, "two")
    attach(azure, one)
    assert ask(imds).json()["client_id"] == one.app_id

    attach(azure, one, two)
    assert description(ask(imds))[1].startswith("Multiple user assigned identities exist")
    assert ask(imds, msi_res_id=str(two.resource_id).upper()).json()["client_id"] == two.app_id
    assert ask(imds, object_id=one.object_id).json()["client_id"] == one.app_id


def test_an_unknown_resource_is_refused(azure: LocalAzure, imds: str) -> None:
    attach(azure, identity(azure, "addon"))

    answer = ask(imds, resource="https://nowhere.example")

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_resource")
