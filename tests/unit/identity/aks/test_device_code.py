"""The device code flow: how it polls, how it goes on without a person, and when a person is asked again."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from identity.aks import tokens
from identity.aks.device_code import DeviceCode, Grant, SessionOverError
from identity.aks.login import Login
from identity.aks.token_cache import TokenCache
from identity.azure.claims import claims_of
from identity.azure.errors import PersonNeededError, SignInRefusedError
from identity.login_kinds import LoginKind
from tests.unit.identity.aks.world import AKS, TENANT, Wire

CHALLENGE = {"device_code": "code", "expires_in": 900, "interval": 5, "message": "enter ABC at https://page"}
GRANTED = {"access_token": "token", "expires_in": 3600, "refresh_token": "next"}


class Script:
    """Answers of Entra ID in a row, a clock that only `sleep` moves, and what happened."""

    def __init__(self, *answers: str | Mapping[str, Any]) -> None:
        self._answers = list(answers)
        self.now = datetime(2026, 11, 21, 12, tzinfo=UTC)
        self.pauses: list[float] = []
        self.forms: list[Mapping[str, str]] = []

    def post(self, url: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
        assert url.startswith(f"https://entra/{TENANT}/oauth2/v2.0/")
        self.forms.append(form)
        answer = CHALLENGE if url.endswith("devicecode") else self._answers.pop(0)
        return (400, {"error": answer}) if isinstance(answer, str) else (200, answer)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += timedelta(seconds=seconds)

    def flow(self) -> DeviceCode:
        login = Login(kind=LoginKind.DEVICE_CODE, tenant_id=TENANT, authority_host="https://entra/")
        return DeviceCode(login, self.post, lambda: self.now, self.sleep)

    def signed_in(self) -> Grant:
        flow = self.flow()
        return flow.poll(flow.challenge())


def test_it_polls_at_the_interval_until_the_person_has_signed_in() -> None:
    script = Script("authorization_pending", "authorization_pending", GRANTED)

    grant = script.signed_in()

    assert script.pauses == [5, 5, 5]
    assert (grant.token.value, grant.refresh_token) == ("token", "next")
    assert script.forms[0] == {
        "client_id": "80faf920-1908-4b52-b5ef-a8e7bedfc67a",
        "scope": f"{AKS}/.default openid offline_access profile",
    }
    assert script.forms[1] == {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "client_id": "80faf920-1908-4b52-b5ef-a8e7bedfc67a",
        "device_code": "code",
    }


def test_it_slows_down_by_five_seconds_at_each_request_and_stays_slow() -> None:
    script = Script("slow_down", "authorization_pending", "slow_down", "authorization_pending", GRANTED)
    script.signed_in()
    assert script.pauses == [5, 10, 10, 15, 15]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("expired_token", "nobody entered the code in time"),
        ("authorization_declined", "the sign-in was declined"),
        ("access_denied", "the sign-in was declined"),
        ("bad_verification_code", "does not know the device code"),
        ("invalid_client", "invalid_client"),
    ],
)
def test_it_stops_at_every_other_answer_and_reports_it(error: str, expected: str) -> None:
    script = Script("authorization_pending", error)
    with pytest.raises(SignInRefusedError, match=expected):
        script.signed_in()
    assert len(script.pauses) == 2


def test_it_stops_by_itself_when_the_code_is_over() -> None:
    script = Script(*["authorization_pending"] * 200)
    with pytest.raises(SignInRefusedError, match="nobody entered the code in time"):
        script.signed_in()
    assert sum(script.pauses) == 900


def test_an_invalid_grant_ends_the_session_and_nothing_else_does() -> None:
    with pytest.raises(SessionOverError):
        Script("invalid_grant").flow().renew("old")
    with pytest.raises(SignInRefusedError, match="temporarily_unavailable"):
        Script("temporarily_unavailable").flow().renew("old")


class Person:
    """Somebody with a browser: reads the message, opens the page, signs in."""

    def __init__(self, wire: Wire, name: str, action: str = "approve") -> None:
        self._wire, self._name, self._action = wire, name, action
        self.asked = 0

    def __call__(self, message: str) -> None:
        self.asked += 1
        found = re.search(r"open the page (\S+) and enter the code (\S+)", message)
        assert found is not None
        trust = ssl.create_default_context(cafile=self._wire.ca_file)
        form = {"otc": found[2], "login": self._name, "action": self._action}
        threading.Thread(target=lambda: httpx.post(found[1], data=form, verify=trust).raise_for_status()).start()


@pytest.fixture
def login(entra: Wire) -> Login:
    entra.azure.people.create_user("ada@idstack.local", "Ada")
    return Login(kind=LoginKind.DEVICE_CODE, tenant_id=TENANT, authority_host=entra.authority)


def test_a_person_signs_in_once_and_the_session_is_renewed_without_them(
    entra: Wire, login: Login, tmp_path: Path
) -> None:
    cache, person = TokenCache(tmp_path), Person(entra, "ada@idstack.local")
    first = tokens.token(login, cache, {}, show=person)
    claims = claims_of(first.value)
    assert (claims["upn"], claims["aud"]) == ("ada@idstack.local", AKS)
    [session] = tmp_path.glob("*.session")
    before = session.read_text()

    in_two_hours = datetime.now(UTC) + timedelta(hours=2)
    renewed = tokens.token(login, cache, {}, show=None, clock=lambda: in_two_hours)

    assert renewed.value != first.value
    assert person.asked == 1
    assert session.read_text() != before, "each renewal brings a new refresh token, and the old one is thrown away"
    assert session.stat().st_mode & 0o777 == 0o600


def test_a_session_that_is_over_asks_again_only_where_somebody_can_answer(
    entra: Wire, login: Login, tmp_path: Path
) -> None:
    cache, person = TokenCache(tmp_path), Person(entra, "ada@idstack.local")
    tokens.token(login, cache, {}, show=person)
    user = entra.azure.people.user_by_name("ada@idstack.local")
    assert user is not None
    entra.azure.people.end_sessions(user.object_id)
    later = datetime.now(UTC) + timedelta(hours=2)

    with pytest.raises(PersonNeededError, match=r"AADSTS50173.*--login certificate"):
        tokens.token(login, cache, {}, show=None, clock=lambda: later)
    assert tokens.token(login, cache, {}, show=person, clock=lambda: later).value
    assert person.asked == 2


def test_a_person_who_declines_is_not_asked_again(entra: Wire, login: Login, tmp_path: Path) -> None:
    person = Person(entra, "ada@idstack.local", action="decline")
    with pytest.raises(SignInRefusedError, match="declined"):
        tokens.token(login, TokenCache(tmp_path), {}, show=person)
    assert person.asked == 1
