"""Signing in to the local Entra as real clients do, and every refusal in Entra's words."""

from __future__ import annotations

import base64
import hashlib
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
from azure.core.exceptions import ClientAuthenticationError

from localcloud.azure.entra.api import app
from localcloud.azure.local_azure import LocalAzure, assemble
from localcloud.azure.shared.faults import Faults
from localcloud.azure.tenant.objects import PasswordCredential
from localcloud.azure.tenant.resources import PUBLIC_AUDIENCES
from localcloud.core import clock
from localcloud.core.clouds import LOCAL_TENANT_ID
from localcloud.testing.azure import open_store
from localcloud.testing.hosts import Certificates, Serve
from tests.token_client import ARM_SCOPE, TokenClient, certificate, registration


@pytest.fixture
def client(azure: LocalAzure, serve: Serve, certificates: Certificates) -> TokenClient:
    return TokenClient.create(azure, serve(app(azure)), certificates.ca_file)


def test_a_certificate_may_be_named_by_the_key_id_alone(client: TokenClient) -> None:
    """As HashiCorp's go-azure-sdk does: `kid` has the value of `x5t`, with its padding."""
    digest = hashlib.sha1(registration(client.issued).certificate).digest()  # noqa: S324  # what `x5t` is

    assert client.post(headers={"kid": base64.urlsafe_b64encode(digest).decode()}).is_success
    refused = client.post(headers={"kid": base64.urlsafe_b64encode(digest[::-1]).decode()}).json()
    assert "AADSTS700027" in refused["error_description"]


def test_a_certificate_credential_of_azure_identity_gets_a_token_for_arm(client: TokenClient) -> None:
    answer = client.credential().get_token(ARM_SCOPE)

    caller = client.azure.tokens.verify(answer.token, PUBLIC_AUDIENCES.arm)
    principal = client.azure.directory.service_principal_by_app(client.app_id)
    assert principal is not None
    assert (caller.client_id, caller.object_id) == (client.app_id, principal.object_id)
    assert 3600 <= answer.expires_on - time.time() + 5 <= 5405, "Entra's tokens live 60 to 90 minutes"


def test_a_certificate_chain_in_the_assertion_is_accepted(client: TokenClient) -> None:
    assert client.credential(send_certificate_chain=True).get_token(ARM_SCOPE).token


def test_an_assertion_as_go_clients_send_it_is_accepted(client: TokenClient) -> None:
    scope = {"scope": "https://vault.azure.net/.default openid offline_access profile"}
    answer = client.post(algorithm="PS256", form=scope)

    assert answer.status_code == 200
    assert client.azure.tokens.verify(answer.json()["access_token"], ["https://vault.azure.net"])


def test_the_token_can_be_verified_with_the_published_key(client: TokenClient) -> None:
    token = client.credential().get_token(ARM_SCOPE).token
    with client.http() as http:
        root = f"{client.authority}/{LOCAL_TENANT_ID}"
        metadata = http.get(f"{root}/v2.0/.well-known/openid-configuration").json()
        of_version_1 = http.get(f"{root}/.well-known/openid-configuration").json()
        key = jwt.PyJWKSet.from_dict(http.get(metadata["jwks_uri"]).json()).keys[0]

    claims = jwt.decode(token, key.key, algorithms=["RS256"], audience="https://management.core.windows.net/")
    assert claims["iss"] == of_version_1["issuer"] == f"https://sts.windows.net/{LOCAL_TENANT_ID}/"
    assert of_version_1["jwks_uri"] == metadata["jwks_uri"]
    assert metadata["token_endpoint"] == f"{root}/oauth2/v2.0/token"


def test_an_unregistered_certificate_is_refused_with_its_thumbprint(client: TokenClient) -> None:
    other = certificate()

    with pytest.raises(ClientAuthenticationError, match=f"AADSTS700027: .*key was not found.*{other.thumbprint}"):
        client.credential(issued=other).get_token(ARM_SCOPE)


@pytest.mark.parametrize(("begins", "days"), [(timedelta(days=-10), 5), (timedelta(days=5), 10)])
def test_a_certificate_outside_its_dates_is_refused(client: TokenClient, begins: timedelta, days: int) -> None:
    outside = certificate(not_before=datetime.now(UTC) + begins, days=days)
    client.azure.directory.set_key_credentials(client.object_id, [registration(outside)])

    with pytest.raises(ClientAuthenticationError, match=r"AADSTS700027: .*expired"):
        client.credential(issued=outside).get_token(ARM_SCOPE)


def test_azure_identity_gives_up_at_the_metadata_of_a_tenant_that_is_not_there(client: TokenClient) -> None:
    unknown = str(uuid.uuid4())

    with pytest.raises(ClientAuthenticationError, match=unknown):
        client.credential(tenant_id=unknown).get_token(ARM_SCOPE)


def test_another_tenants_metadata_and_tokens_are_error_90002(client: TokenClient) -> None:
    with client.http() as http:
        metadata = http.get(f"{client.authority}/contoso/v2.0/.well-known/openid-configuration")
        token = http.post(f"{client.authority}/contoso/oauth2/v2.0/token", data={"grant_type": "client_credentials"})

    assert (metadata.status_code, metadata.json()["error"]) == (400, "invalid_tenant")
    assert token.json()["error_description"].startswith("AADSTS90002: Tenant 'contoso' not found.")


def test_a_deleted_application_does_not_sign_in_until_it_is_restored(client: TokenClient) -> None:
    client.azure.directory.delete_application(client.object_id)
    assert client.post().json()["error_codes"] == [700016]

    client.azure.directory.restore(client.object_id)
    assert client.post().status_code == 200, "the service principal came back with its application"


@pytest.fixture
def lagging(tmp_path: Path, serve: Serve, certificates: Certificates) -> TokenClient:
    """A tenant with one prompt replica and one that lags an hour; the client has been there for long."""
    store = open_store(tmp_path / "lagging.sqlite")
    azure = assemble(store, Faults(replica_delays=(0.0, 3600.0), seed=7), authority_host="https://127.0.0.1/")
    return TokenClient.create(azure, serve(app(azure)), certificates.ca_file)


def outcomes(client: TokenClient, ahead: timedelta) -> set[tuple[int, ...]]:
    """The error codes of ten sign-ins in a row, `ahead` of the real time; () is a success."""
    now = int((datetime.now(UTC) + ahead).timestamp())
    with clock.moved_ahead(ahead):
        answers = [client.post(claims={"nbf": now, "exp": now + 600}).json() for _ in range(10)]
    return {tuple(answer.get("error_codes", ())) for answer in answers}


def test_a_certificate_is_known_to_some_replicas_first_and_to_all_later(lagging: TokenClient) -> None:
    later, much_later = timedelta(hours=2), timedelta(hours=4)
    new = certificate()
    with clock.moved_ahead(later):
        lagging.azure.directory.set_key_credentials(
            lagging.object_id, [registration(lagging.issued), registration(new)]
        )
    with_new = replace(lagging, issued=new)

    assert outcomes(with_new, later) == {(), (700027,)}
    assert outcomes(with_new, much_later) == {()}
    assert outcomes(lagging, later) == {()}, "the certificate that was there before works all the time"


def test_a_removed_certificate_still_works_on_a_replica_that_lags(lagging: TokenClient) -> None:
    with clock.moved_ahead(timedelta(hours=2)):
        lagging.azure.directory.set_key_credentials(lagging.object_id, [])

    assert outcomes(lagging, timedelta(hours=2)) == {(), (700027,)}
    assert outcomes(lagging, timedelta(hours=4)) == {(700027,)}


def test_a_new_application_is_unknown_to_a_replica_that_lags(lagging: TokenClient) -> None:
    assert outcomes(lagging, timedelta()) == {(), (700016,)}


def test_a_tenant_is_taken_in_any_letter_case(client: TokenClient) -> None:
    assert client.credential(tenant_id=LOCAL_TENANT_ID.upper()).get_token(ARM_SCOPE).token


def test_the_issuer_is_an_audience_as_well_and_a_list_is_none(client: TokenClient) -> None:
    issuer = f"{client.authority}/{LOCAL_TENANT_ID}/v2.0"

    assert client.post(claims={"aud": issuer}).is_success
    refused = client.post(claims={"aud": [issuer]})
    assert (refused.status_code, refused.json()["error_codes"]) == (401, [50027])


def test_version_1_gives_a_token_for_a_resource(client: TokenClient) -> None:
    """The metadata of version 1.0 announces this endpoint."""
    endpoint = f"{client.authority}/{LOCAL_TENANT_ID}/oauth2/token"
    password, value = PasswordCredential.issue("v1", clock.now() + timedelta(days=1))
    application = client.azure.directory.application_by_app(client.app_id)
    assert application is not None
    client.azure.directory.update(replace(application, passwords=(password,)))
    form = {"grant_type": "client_credentials", "client_id": client.app_id.upper(), "client_secret": value}
    with client.http() as http:
        announced = http.get(f"{client.authority}/{LOCAL_TENANT_ID}/.well-known/openid-configuration").json()
        answer = http.post(endpoint, data={**form, "resource": "https://vault.azure.net"}).json()
        refused = http.post(endpoint, data={**form, "scope": ARM_SCOPE}).json()

    assert announced["token_endpoint"] == endpoint
    assert client.azure.tokens.verify(answer["access_token"], ["https://vault.azure.net"])
    assert (answer["resource"], int(answer["expires_on"]) > time.time()) == ("https://vault.azure.net", True)
    assert all(isinstance(item, str) for item in answer.values())
    assert refused["error_codes"] == [900144]


def test_what_msal_states_about_itself_is_taken_and_other_parameters_are_not(client: TokenClient) -> None:
    capabilities = '{"access_token": {"xms_cc": {"values": ["CP1"]}, "nbf": {"essential": true}}}'
    diagnostics = {"client_info": "1", "x-client-SKU": "msal.js.node", "x-client-VER": "3", "claims": capabilities}
    challenge = '{"access_token": {"acrs": {"essential": true, "value": "c1"}}}'

    assert client.post(form=diagnostics).is_success
    assert client.post(form={"claims": challenge}).status_code == 501
    assert client.post(form={"token_type": "pop", "req_cnf": "x"}).status_code == 501
