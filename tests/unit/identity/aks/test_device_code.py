"""The device code flow: how it ends, how it goes on without a person, and when a person is asked again."""

from __future__ import annotations

import base64
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.aks import tokens
from identity.aks.login import Login
from identity.aks.sign_in import claims_of
from identity.aks.tokens import TokenCache
from identity.azure.errors import PersonNeededError, SignInRefusedError
from identity.login_kinds import LoginKind
from localcloud.testing.hosts import Serve
from tests.unit.identity.aks.world import AKS, STRANGER, TENANT, Wire, metadata_of

CHALLENGE = {"device_code": "code", "interval": 1, "message": "enter ABC at https://page"}
GRANTED = {
    "access_token": "token",
    "expires_in": 3600,
    "refresh_token": "next",
    "client_info": base64.urlsafe_b64encode(b'{"uid": "ada", "utid": "tenant"}').decode(),
}


@dataclass
class Script:
    """An Entra ID that gives its answers in a row, the last of them for ever.

    `expires_in` is the lifetime of a code, in seconds.
    """

    answers: list[str | Mapping[str, Any]]
    expires_in: int = 900
    forms: list[dict[str, str]] = field(default_factory=list)

    def app(self) -> Starlette:
        async def challenge(request: Request) -> Response:
            self.forms.append(dict(parse_qsl((await request.body()).decode())))
            return JSONResponse({**CHALLENGE, "expires_in": self.expires_in})

        async def token(request: Request) -> Response:
            self.forms.append(dict(parse_qsl((await request.body()).decode())))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            return JSONResponse({"error": answer}, 400) if isinstance(answer, str) else JSONResponse(answer)

        async def metadata(request: Request) -> Response:
            return JSONResponse(metadata_of(f"https://{request.headers['host']}/{TENANT}"))

        return Starlette(
            routes=[
                Route("/{tenant}/v2.0/.well-known/openid-configuration", metadata),
                Route("/{tenant}/oauth2/v2.0/devicecode", challenge, methods=["POST"]),
                Route("/{tenant}/oauth2/v2.0/token", token, methods=["POST"]),
            ]
        )


@pytest.fixture
def scripted(serve: Serve, trusts_authority: None) -> Callable[[Script], Login]:
    """A login at an Entra ID that follows a script."""

    def login(script: Script) -> Login:
        return Login(kind=LoginKind.DEVICE_CODE, tenant_id=TENANT, authority_host=f"{serve(script.app())}/")

    return login


def test_it_asks_as_azures_clients_do(scripted: Callable[[Script], Login], tmp_path: Path) -> None:
    script = Script([GRANTED])
    shown: list[str] = []

    assert tokens.token(scripted(script), TokenCache(tmp_path), {}, show=shown.append).value == "token"

    assert shown == ["enter ABC at https://page"]
    begun, polled = script.forms
    assert begun["client_id"] == polled["client_id"] == "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
    assert set(begun["scope"].split()) == {f"{AKS}/.default", "openid", "offline_access", "profile"}
    assert (polled["grant_type"], polled["device_code"]) == ("urn:ietf:params:oauth:grant-type:device_code", "code")


@pytest.mark.parametrize(
    ("error", "expires_in", "expected"),
    [
        ("expired_token", 900, "nobody entered the code in time; run the same command again"),
        ("authorization_declined", 900, "the sign-in was declined"),
        ("access_denied", 900, "the sign-in was declined"),
        ("bad_verification_code", 900, "does not know the device code"),
        ("invalid_client", 900, "invalid_client"),
        ("authorization_pending", 0, "nobody entered the code in time"),
        ("slow_down", 0, "nobody entered the code in time"),
    ],
)
def test_it_stops_at_a_refusal_or_the_codes_end_and_reports_it(
    scripted: Callable[[Script], Login], tmp_path: Path, error: str, expires_in: int, expected: str
) -> None:
    with pytest.raises(SignInRefusedError, match=f"device code sign-in: .*{expected}"):
        tokens.token(scripted(Script([error], expires_in)), TokenCache(tmp_path), {}, show=lambda _: None)


def test_a_refused_renewal_asks_nobody_unless_the_session_is_over(
    scripted: Callable[[Script], Login], tmp_path: Path
) -> None:
    script, cache = Script([GRANTED, "temporarily_unavailable", "invalid_grant"]), TokenCache(tmp_path)
    login = scripted(script)
    tokens.token(login, cache, {}, show=lambda _: None)
    later = datetime.now(UTC) + timedelta(hours=2)

    with pytest.raises(SignInRefusedError, match="temporarily_unavailable"):
        tokens.token(login, cache, {}, show=pytest.fail, clock=lambda: later)
    assert script.forms[-1]["refresh_token"] == "next"
    with pytest.raises(PersonNeededError, match=r"the session is over \(invalid_grant\)"):
        tokens.token(login, cache, {}, show=None, clock=lambda: later)


def test_a_tenant_or_server_that_does_not_exist_is_named(
    entra: Wire, serve: Serve, login: Login, tmp_path: Path
) -> None:
    for wrong, expected in (
        (replace(login, tenant_id=STRANGER), "AADSTS90002: Tenant '6f2c1e7a"),
        (
            replace(login, authority_host=f"{serve(Starlette())}/"),
            "Unable to get authority configuration for https://127",
        ),
        (
            replace(login, authority_host="https://127.0.0.1:1/"),
            "https://127.0.0.1:1/ does not answer as Entra ID does",
        ),
    ):
        with pytest.raises(SignInRefusedError) as refused:
            tokens.token(wrong, TokenCache(tmp_path), {}, show=pytest.fail)
        assert str(refused.value).startswith(f"device code sign-in: {expected}")


def test_a_partial_session_counts_as_none(scripted: Callable[[Script], Login], tmp_path: Path) -> None:
    login, cache = scripted(Script([GRANTED])), TokenCache(tmp_path)
    tokens.token(login, cache, {}, show=lambda _: None)
    [session] = tmp_path.glob("*.session")
    session.write_text(session.read_text()[:100])
    with pytest.raises(PersonNeededError, match="nobody signed in yet"):
        tokens.token(login, cache, {}, show=None, clock=lambda: datetime.now(UTC) + timedelta(hours=2))


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

    entra.azure.people.create_user("bob@idstack.local", "Bob")
    another = Person(entra, "bob@idstack.local")
    assert tokens.token(login, cache, {}, show=another, clock=lambda: later).value
    assert (person.asked, another.asked) == (1, 1)
    renewed = tokens.token(login, cache, {}, show=None, clock=lambda: later + timedelta(hours=2))
    assert claims_of(renewed.value)["upn"] == "bob@idstack.local"


def test_a_person_who_declines_is_not_asked_again(entra: Wire, login: Login, tmp_path: Path) -> None:
    person = Person(entra, "ada@idstack.local", action="decline")
    with pytest.raises(SignInRefusedError, match="declined"):
        tokens.token(login, TokenCache(tmp_path), {}, show=person)
    assert person.asked == 1
