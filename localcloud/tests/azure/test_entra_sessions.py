"""Device codes, refresh tokens and groups as the local Entra ID has them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.identity import DeviceCodeCredential

from identity.access.claims import claims_of
from localcloud.azure.entra.api import app
from localcloud.azure.local_azure import LocalAzure, assemble
from localcloud.azure.shared.faults import Faults
from localcloud.tests.hosts import Certificates, Serve
from localcloud.tests.stores import open_store

TENANT = "10ca1000-0000-4000-8000-000000000001"
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
CLIENT = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
SCOPE = f"{AKS}/.default openid offline_access profile"


class DeviceSignIns:
    """The endpoints, and one user."""

    def __init__(self, azure: LocalAzure) -> None:
        self.azure = azure
        self.user = azure.people.create_user("ada@idstack.local", "Ada")
        self._app = app(azure)

    def post(self, endpoint: str, **form: str) -> httpx.Response:
        return self._send(f"/{TENANT}/oauth2/v2.0/{endpoint}", {"client_id": CLIENT, **form})

    def _send(self, path: str, form: dict[str, str]) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="https://entra") as client:
                return await client.post(path, data=form)

        return asyncio.run(send())

    def challenge(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.post("devicecode", scope=SCOPE).json()
        return answer

    def decide(self, user_code: str, login: str = "ada@idstack.local") -> int:
        form = {"otc": user_code, "login": login, "action": "approve"}
        return self._send("/common/oauth2/deviceauth", form).status_code

    def poll(self, device_code: str, **form: str) -> httpx.Response:
        grant = "urn:ietf:params:oauth:grant-type:device_code"
        return self.post("token", grant_type=grant, device_code=device_code, **form)

    def refresh(self, refresh_token: str, **form: str) -> httpx.Response:
        return self.post("token", grant_type="refresh_token", refresh_token=refresh_token, scope=SCOPE, **form)

    def session(self) -> str:
        challenge = self.challenge()
        self.decide(challenge["user_code"])
        return str(self.poll(challenge["device_code"]).json()["refresh_token"])


@pytest.fixture
def entra(azure: LocalAzure) -> DeviceSignIns:
    return DeviceSignIns(azure)


@pytest.fixture
def punctual(tmp_path: Path) -> Iterator[DeviceSignIns]:
    """With the interval that Entra has."""
    store = open_store(tmp_path / "punctual.sqlite")
    yield DeviceSignIns(assemble(store, Faults(), authority_host="https://entra/"))
    store.close()


def test_a_device_code_is_pending_until_approved_and_then_works_once(entra: DeviceSignIns) -> None:
    challenge = entra.challenge()
    assert entra.poll(challenge["device_code"]).json()["error"] == "authorization_pending"
    assert entra.decide("WRONGCODE") == 400
    assert entra.decide(challenge["user_code"], login="nobody@idstack.local") == 400
    assert entra.decide(challenge["user_code"]) == 200

    granted = entra.poll(challenge["device_code"]).json()

    claims = claims_of(granted["access_token"])
    assert (claims["aud"], claims["upn"], claims["oid"]) == (AKS, "ada@idstack.local", entra.user.object_id)
    assert (claims["appid"], claims["idtyp"]) == (CLIENT, "user")
    assert granted["refresh_token"]
    assert entra.poll(challenge["device_code"]).json()["error"] == "bad_verification_code"


def test_a_device_code_is_of_one_client(entra: DeviceSignIns) -> None:
    other = entra.azure.directory.create_application("other").app_id
    refused = entra.poll(entra.challenge()["device_code"], client_id=other)
    assert refused.json()["error"] == "bad_verification_code"


def test_polling_faster_than_the_interval_gets_slow_down(punctual: DeviceSignIns) -> None:
    challenge = punctual.challenge()
    assert challenge["interval"] == 5
    answers = [punctual.poll(challenge["device_code"]).json()["error"] for _ in range(2)]
    assert answers == ["authorization_pending", "slow_down"]


def test_a_refresh_token_returns_another_and_stays_valid(entra: DeviceSignIns) -> None:
    first = entra.session()
    second = entra.refresh(first).json()["refresh_token"]
    assert second != first
    assert entra.refresh(first).status_code == 200
    assert entra.refresh(second).status_code == 200


def test_a_session_is_of_one_client(entra: DeviceSignIns) -> None:
    other = entra.azure.directory.create_application("other").app_id
    body = entra.refresh(entra.session(), client_id=other).json()
    assert (body["error"], body["error_codes"]) == ("invalid_grant", [9002313])


def test_an_unregistered_client_gets_no_device_code(entra: DeviceSignIns) -> None:
    answer = entra.post("devicecode", client_id="6f2c1e7a-0000-4000-8000-00000000cccc", scope=SCOPE)
    assert answer.json()["error_codes"] == [700016]


def test_tokens_for_aks_carry_the_groups_up_to_entras_limit(azure: LocalAzure) -> None:
    user = azure.people.create_user("ada@idstack.local", "Ada")
    groups = {azure.people.create_group(f"g{number}", [user.object_id]) for number in range(200)}

    def claims(resource: str) -> dict[str, object]:
        return dict(claims_of(azure.tokens.issue_for_user(user, CLIENT, resource)))

    found = claims(AKS)["groups"]
    assert isinstance(found, list)
    assert set(found) == groups
    assert "groups" not in claims("https://management.azure.com")

    azure.people.create_group("one too many", [user.object_id])
    over = claims(AKS)
    assert "groups" not in over
    assert over["_claim_names"] == {"groups": "src1"}
    assert str(over["_claim_sources"]).count(f"/users/{user.object_id}/getMemberObjects") == 1


def test_azure_identitys_own_device_code_credential_signs_in(
    entra: DeviceSignIns, serve: Serve, certificates: Certificates
) -> None:
    def person(uri: str, code: str, expires: datetime) -> None:
        deciding = threading.Thread(target=entra.decide, args=(code,))  # the credential runs in no event loop's thread
        deciding.start()
        deciding.join()

    credential = DeviceCodeCredential(
        client_id=CLIENT,
        tenant_id=TENANT,
        authority=serve(app(entra.azure)),
        disable_instance_discovery=True,
        connection_verify=str(certificates.ca_file),
        prompt_callback=person,
    )
    assert claims_of(credential.get_token(f"{AKS}/.default").token)["upn"] == "ada@idstack.local"
