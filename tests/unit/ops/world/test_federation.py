"""What an issuer publishes to anybody, and what ARM shows of a managed identity."""

from __future__ import annotations

from typing import Any, cast

import pytest

from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.credentials.openid_documents import discovery_document, jwks_document
from ops.world.azure import read_issuer, read_seen_identity
from ops.world.expected import FederatedTrust
from ops.world.stack_world import SeenIssuer, SeenManagedIdentity
from tests.unit.ops import answers

ISSUER = "https://hc2oidc.blob.core.windows.net/hc2oidc"
DISCOVERY, JWKS = f"{ISSUER}/.well-known/openid-configuration", f"{ISSUER}/openid/v1/jwks"
KEYS = jwks_document([{"kty": "RSA", "kid": "kid-1", "n": "n", "e": "AQAB"}])
IDENTITY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc2-disk-i"
PUBLISHED: dict[str, Any] = {DISCOVERY: discovery_document(ISSUER), JWKS: KEYS}


class FakeAzure:
    """Documents and resources by address; an exception is raised."""

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    def public_document(self, url: str) -> Any:
        answer = self._found.get(url)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def resource(self, resource_id: str, api_version: str) -> Any:
        return self._found.get(resource_id)

    def resources(self, collection: str, api_version: str) -> Any:
        return self._found.get(collection, [])


def azure(found: dict[str, Any]) -> AzureClient:
    return cast("AzureClient", FakeAzure(found))


def test_an_issuer_is_the_keys_that_anybody_gets_there() -> None:
    assert read_issuer(azure(PUBLISHED), ISSUER) == SeenIssuer(keys=("kid-1",))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({DISCOVERY: None}, "there is no discovery document"),
        ({JWKS: None}, "there is no JWKS"),
        ({DISCOVERY: discovery_document(f"{ISSUER}/")}, f'its discovery document names the issuer "{ISSUER}/"'),
        ({JWKS: b"{}"}, "its JWKS has no list of keys"),
        ({DISCOVERY: AzureRefusedError("reading it:\n 409 PublicAccessNotPermitted", 409)}, "reading it: 409 Public"),
    ],
    ids=["discovery", "jwks", "another-issuer", "no-keys", "closed"],
)
def test_what_keeps_entra_id_from_the_keys_is_the_issuers_problem(changes: dict[str, Any], problem: str) -> None:
    found = read_issuer(azure({**PUBLISHED, **changes}), ISSUER)

    assert found.keys == ()
    assert found.problem.startswith(problem)


@pytest.mark.parametrize("status", [None, 503], ids=["no-answer", "server-error"])
def test_an_issuer_that_does_not_answer_here_is_not_blamed(status: int | None) -> None:
    with pytest.raises(AzureRefusedError):
        read_issuer(azure({DISCOVERY: AzureRefusedError("no route", status)}), ISSUER)


def test_a_managed_identity_has_a_trust_for_each_audience() -> None:
    credentials = f"{IDENTITY}/federatedIdentityCredentials"
    audiences = ["openshift", "other"]
    credential = answers.federated_credential(
        f"{credentials}/c", "system:serviceaccount:a:b", issuer=ISSUER, audiences=audiences
    )
    found = {IDENTITY: answers.managed_identity(IDENTITY, "c"), credentials: [credential]}

    trusts = tuple(
        FederatedTrust(issuer=ISSUER, subject="system:serviceaccount:a:b", audience=audience) for audience in audiences
    )
    assert read_seen_identity(azure(found), IDENTITY) == SeenManagedIdentity(client_id="c", trusts=trusts)
    assert read_seen_identity(azure({}), IDENTITY) is None
