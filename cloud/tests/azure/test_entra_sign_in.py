"""Signing in to the local Entra as real clients do, and every refusal in Entra's words."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import DeviceCodeCredential

from localcloud.azure.entra.api import app
from localcloud.azure.local_azure import LocalAzure, assemble
from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.azure.tenant.objects import PasswordCredential
from localcloud.azure.tenant.tokens import PUBLIC_AUDIENCES, InvalidTokenError
from localcloud.core import clock
from localcloud.core.clouds import AKS_SERVER_APP_ID, LOCAL_TENANT_ID
from localcloud.testing.azure import open_store
from localcloud.testing.hosts import Certificates, Serve
from tests.azure.graph.world import GRAPH, signed_in
from tests.coverage.cloud import AKS_CLIENT, USER, CoverageCloud
from tests.token_client import ARM_SCOPE, TokenClient, certificate, registration

# The directory's rules that no client sees at once: replication, retention, uniqueness.

ARM = "https://management.azure.com"


def test_a_deleted_application_is_kept_for_thirty_days(azure: LocalAzure) -> None:
    application = azure.directory.create_application("app")
    azure.directory.delete(application)

    with clock.moved_ahead(timedelta(days=29)):
        assert [deleted.entry for deleted in azure.directory.deleted()] == [application]
    with clock.moved_ahead(timedelta(days=31)):
        assert azure.directory.restore(application.object_id) is None


def test_a_managed_identitys_principal_is_gone_at_once(azure: LocalAzure) -> None:
    identity = azure.directory.create_managed_identity("/subscriptions/s/x", "identity")

    assert azure.directory.delete_service_principal(identity.object_id)
    assert azure.directory.service_principal_by_app(identity.app_id) is None
    assert azure.directory.deleted() == []


def test_a_token_is_valid_for_its_audience_and_dates_only(azure: LocalAzure) -> None:
    identity = azure.directory.create_managed_identity("/subscriptions/s/x", "identity")
    token = azure.tokens.issue(identity, ARM, lifetime=timedelta(hours=1))

    assert azure.tokens.verify(token, [ARM]).object_id == identity.object_id
    with pytest.raises(InvalidTokenError, match="audience"):
        azure.tokens.verify(token, ["https://vault.azure.net"])
    with pytest.raises(InvalidTokenError, match="invalid"):
        azure.tokens.verify(f"{token[:-6]}AAAAAA", [ARM])
    with clock.moved_ahead(timedelta(hours=2)), pytest.raises(InvalidTokenError, match="expiry"):
        azure.tokens.verify(token, [ARM])


def test_graph_permissions_are_in_graphs_tokens_only(azure: LocalAzure) -> None:
    granted = signed_in(azure, "Application.Read.All")

    assert azure.tokens.verify(azure.tokens.issue(granted, GRAPH), [GRAPH]).roles == {"Application.Read.All"}
    assert azure.tokens.verify(azure.tokens.issue(granted, ARM), [ARM]).roles == frozenset()


# Device codes, refresh tokens and groups as the local Entra ID has them.

_UNVERIFIED: Final[Any] = {"verify_signature": False}


@pytest.fixture
def tenant(cloud: CoverageCloud) -> CoverageCloud:
    """A tenant with one user."""
    cloud.cloud.people.create_user(USER, "Ada")
    return cloud


def session(tenant: CoverageCloud) -> str:
    """A refresh token of the user."""
    challenge = tenant.device_code()
    tenant.decide(challenge["user_code"])
    return str(tenant.poll(challenge["device_code"]).json()["refresh_token"])


def test_a_device_code_is_pending_until_approved_and_then_works_once(tenant: CoverageCloud) -> None:
    challenge = tenant.device_code()
    assert tenant.poll(challenge["device_code"]).json()["error"] == "authorization_pending"
    assert tenant.decide("WRONGCODE") == 400
    assert tenant.decide(challenge["user_code"], login="nobody@idstack.local") == 400
    assert tenant.decide(challenge["user_code"]) == 200

    granted = tenant.poll(challenge["device_code"]).json()

    claims = jwt.decode(granted["access_token"], options=_UNVERIFIED)
    user = tenant.cloud.people.user_by_name(USER)
    assert user is not None
    assert (claims["aud"], claims["upn"], claims["oid"]) == (AKS_SERVER_APP_ID, USER, user.object_id)
    assert (claims["appid"], claims["idtyp"]) == (AKS_CLIENT, "user")
    assert granted["refresh_token"]
    assert tenant.poll(challenge["device_code"]).json()["error"] == "bad_verification_code"


def test_a_device_code_is_redeemed_under_the_name_of_msal_for_go(tenant: CoverageCloud) -> None:
    challenge = tenant.device_code()
    pending = tenant.poll(challenge["device_code"], grant="device_code").json()["error"]
    tenant.decide(challenge["user_code"])

    granted = tenant.poll(challenge["device_code"], grant="device_code")

    assert (pending, granted.status_code) == ("authorization_pending", 200)


def test_a_device_code_is_of_one_client(tenant: CoverageCloud) -> None:
    other = tenant.cloud.directory.create_application("other").app_id
    refused = tenant.poll(tenant.device_code()["device_code"], other)
    assert refused.json()["error"] == "bad_verification_code"


def test_polling_faster_than_the_interval_gets_slow_down(tmp_path: Path) -> None:
    punctual = CoverageCloud(tmp_path, replace(NO_DELAYS, device_code_interval=Faults().device_code_interval))
    challenge = punctual.device_code()
    assert challenge["interval"] == 5
    answers = [punctual.poll(challenge["device_code"]).json()["error"] for _ in range(2)]
    assert answers == ["authorization_pending", "slow_down"]
    punctual.store.close()


def test_a_refresh_token_returns_another_and_stays_valid(tenant: CoverageCloud) -> None:
    first = session(tenant)
    second = tenant.refresh(first).json()["refresh_token"]
    assert second != first
    assert tenant.refresh(first).status_code == 200
    assert tenant.refresh(second).status_code == 200


def test_a_session_is_of_one_client(tenant: CoverageCloud) -> None:
    other = tenant.cloud.directory.create_application("other").app_id
    body = tenant.refresh(session(tenant), other).json()
    assert (body["error"], body["error_codes"]) == ("invalid_grant", [9002313])


def test_an_unregistered_client_gets_no_device_code(tenant: CoverageCloud) -> None:
    assert tenant.device_code("6f2c1e7a-0000-4000-8000-00000000cccc")["error_codes"] == [700016]


def test_tokens_for_aks_carry_the_groups_up_to_entras_limit(azure: LocalAzure) -> None:
    user = azure.people.create_user("ada@idstack.local", "Ada")
    groups = {azure.people.create_group(f"g{number}", [user.object_id]) for number in range(200)}

    def claims(resource: str) -> dict[str, object]:
        return dict(jwt.decode(azure.tokens.issue_for_user(user, AKS_CLIENT, resource), options=_UNVERIFIED))

    found = claims(AKS_SERVER_APP_ID)["groups"]
    assert isinstance(found, list)
    assert set(found) == groups
    assert "groups" not in claims("https://management.azure.com")

    azure.people.create_group("one too many", [user.object_id])
    over = claims(AKS_SERVER_APP_ID)
    assert "groups" not in over
    assert over["_claim_names"] == {"groups": "src1"}
    assert str(over["_claim_sources"]).count(f"/users/{user.object_id}/getMemberObjects") == 1


def test_azure_identitys_own_device_code_credential_signs_in(
    tenant: CoverageCloud, serve: Serve, certificates: Certificates
) -> None:
    def person(uri: str, code: str, expires: datetime) -> None:
        deciding = threading.Thread(target=tenant.decide, args=(code,))  # the credential runs in no event loop's thread
        deciding.start()
        deciding.join()

    credential = DeviceCodeCredential(
        client_id=AKS_CLIENT,
        tenant_id=tenant.cloud.tenant_id,
        authority=serve(tenant.entra),
        disable_instance_discovery=True,
        connection_verify=str(certificates.ca_file),
        prompt_callback=person,
    )
    token = credential.get_token(f"{AKS_SERVER_APP_ID}/.default").token
    assert jwt.decode(token, options=_UNVERIFIED)["upn"] == USER


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
    application = client.azure.directory.application(client.object_id)
    assert application is not None
    client.azure.directory.delete(application)
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


def test_ids_of_tenant_and_server_application_are_taken_in_any_letter_case(client: TokenClient) -> None:
    credential = client.credential(tenant_id=LOCAL_TENANT_ID.upper())

    token = credential.get_token(f"{AKS_SERVER_APP_ID.upper()}/.default").token

    assert client.azure.tokens.verify(token, [AKS_SERVER_APP_ID])


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
