"""Device codes, refresh tokens and groups as the local Entra ID has them."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from azure.identity import DeviceCodeCredential

from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.core.clouds import AKS_SERVER_APP_ID
from localcloud.testing.hosts import Certificates, Serve
from tests.coverage.cloud import AKS_CLIENT, USER, CoverageCloud

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
