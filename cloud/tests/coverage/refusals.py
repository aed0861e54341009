"""A request for each refusal of Entra, Graph, Key Vault and IMDS that `COVERAGE.md` lists, by its case."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from unittest.mock import AsyncMock, patch

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from jwt.algorithms import RSAAlgorithm

from localcloud.azure.entra.federation import Issuers
from localcloud.azure.tenant.objects import PasswordCredential, ServicePrincipal
from localcloud.core import clock
from localcloud.core.clock import rfc3339
from localcloud.testing.arm import ONE, SUBSCRIPTION
from localcloud.testing.azure import ask
from localcloud.testing.certificates import IssuedCertificate
from tests.coverage.cloud import AUTHORITY, USER, CoverageCloud, Provoke, after
from tests.token_client import assertion, form_with, registration, shared_certificate

_VAULT: Final = "https://kv-idstack-local.vault.azure.net"
METADATA: Final = {"Metadata": "true"}
ASKED: Final = {"api-version": "2018-02-01", "resource": "https://vault.azure.net"}


def _signed(
    cloud: CoverageCloud,
    *,
    issued: IssuedCertificate | None = None,
    is_registered: bool = True,
    prepare: Callable[[ServicePrincipal], object] = lambda _: None,
    form: Mapping[str, str] | None = None,
    **changed: Any,
) -> httpx.Response:
    """A sign-in with a client assertion; the keywords make it a wrong one, `changed` as for `assertion`."""
    issued = issued or shared_certificate()
    principal = cloud.nobody()
    application = cloud.cloud.directory.application_by_app(principal.app_id)
    assert application is not None
    if is_registered:
        cloud.cloud.directory.set_key_credentials(application.object_id, [registration(issued)])
    prepare(principal)
    endpoint = f"{AUTHORITY}/{cloud.cloud.tenant_id}/oauth2/v2.0/token"
    right = form_with(principal.app_id, assertion(principal.app_id, endpoint, issued, **changed))
    return cloud.token({name: value for name, value in {**right, **(form or {})}.items() if value})


def _disabled(cloud: CoverageCloud) -> httpx.Response:
    def disable(principal: ServicePrincipal) -> None:
        cloud.cloud.directory.update(replace(principal, properties={"accountEnabled": False}))

    return _signed(cloud, prepare=disable)


def _principal_deleted(cloud: CoverageCloud) -> httpx.Response:
    return _signed(cloud, prepare=lambda principal: cloud.cloud.directory.delete_service_principal(principal.object_id))


def _decided(cloud: CoverageCloud, action: str) -> httpx.Response:
    """The answer to a poll after a person has approved or declined."""
    cloud.cloud.people.create_user(USER, "Ada")
    code = cloud.device_code()
    cloud.decide(code["user_code"], action=action)
    return cloud.poll(code["device_code"])


def _polled_later(cloud: CoverageCloud, first: timedelta, then: timedelta) -> httpx.Response:
    """The second of two polls."""
    code = cloud.device_code()["device_code"]
    with clock.moved_ahead(first):
        cloud.poll(code)
    with clock.moved_ahead(then):
        return cloud.poll(code)


def _refreshed(
    cloud: CoverageCloud, after: timedelta = timedelta(0), *, password_changed: bool = False
) -> httpx.Response:
    token = _decided(cloud, "approve").json()["refresh_token"]
    user = cloud.cloud.people.user_by_name(USER)
    assert user is not None
    if password_changed:
        cloud.cloud.people.end_sessions(user.object_id)
    with clock.moved_ahead(after):
        return cloud.refresh(token)


_ISSUER: Final = "https://127.0.0.1:1"


def federated(cloud: CoverageCloud, *, keys: Sequence[Any] | None = None, **claims: str) -> httpx.Response:
    """A sign-in with another issuer's token; `keys` are those that the issuer publishes, None if it is silent."""
    principal = cloud.nobody()
    application = cloud.cloud.directory.application_by_app(principal.app_id)
    assert application is not None
    trusted = {"id": ONE, "name": "ci", "issuer": _ISSUER, "subject": "ci", "audiences": ["api://AzureADTokenExchange"]}
    cloud.cloud.directory.update(replace(application, federated=(trusted,)))
    right = {"iss": _ISSUER, "sub": "ci", "aud": "api://AzureADTokenExchange"}
    expires = int(clock.now().timestamp()) + 600
    key = shared_certificate().private_key_pem
    form = form_with(principal.app_id, jwt.encode({**right, "exp": expires, **claims}, key, algorithm="RS256"))
    if keys is None:
        return cloud.token(form)
    with patch.object(Issuers, "_keys", AsyncMock(return_value=keys)):
        return cloud.token(form)


def _another_key() -> jwt.PyJWK:
    """A key under the id that the token names, which signed nothing."""
    key = generate_private_key(public_exponent=65537, key_size=2048)
    return jwt.PyJWK({**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "None"})


def _expired_secret(cloud: CoverageCloud) -> httpx.Response:
    password, value = PasswordCredential.issue("old", clock.now())

    def register(principal: ServicePrincipal) -> None:
        application = cloud.cloud.directory.application_by_app(principal.app_id)
        assert application is not None
        cloud.cloud.directory.update(replace(application, passwords=(password,)))

    return _signed(cloud, prepare=register, form={"client_assertion": "", "client_secret": value})


ENTRA: Final[Mapping[str, Provoke]] = {
    "expired client secret": _expired_secret,
    "federated token of an unknown issuer": lambda cloud: federated(cloud, iss="https://elsewhere.example"),
    "federated token for another audience": lambda cloud: federated(cloud, aud="another"),
    "federated token of another subject": lambda cloud: federated(cloud, sub="another"),
    "issuer that does not answer": federated,
    "federated token of a key that is not published": lambda cloud: federated(cloud, keys=()),
    "federated token with a forged signature": lambda cloud: federated(cloud, keys=[_another_key()]),
    "unknown tenant": lambda cloud: cloud.token({}, tenant="contoso"),
    "discovery of an unknown authority": lambda cloud: cloud.without(
        cloud.entra, AUTHORITY, "GET", "/common/discovery/instance", authorization_endpoint="https://login.example.com/"
    ),
    "missing parameter": lambda cloud: cloud.token({"grant_type": "client_credentials"}),
    "another grant": lambda cloud: _signed(cloud, form={"grant_type": "password"}),
    "unknown application": lambda cloud: _signed(cloud, form={"client_id": ONE}),
    "no service principal": _principal_deleted,
    "disabled application": _disabled,
    "no credential": lambda cloud: _signed(cloud, form={"client_assertion": ""}),
    "wrong client secret": lambda cloud: _signed(cloud, form={"client_assertion": "", "client_secret": "x"}),
    "assertion that is not a JWT": lambda cloud: _signed(cloud, form={"client_assertion": "x"}),
    "assertion of another client": lambda cloud: _signed(cloud, claims={"sub": ONE}),
    "assertion for another audience": lambda cloud: _signed(cloud, claims={"aud": "https://example.com"}),
    "assertion out of time": lambda cloud: _signed(cloud, claims={"nbf": 1, "exp": 2}),
    "certificate not registered": lambda cloud: _signed(cloud, is_registered=False),
    "certificate expired": lambda cloud: _signed(cloud, issued=shared_certificate(days=1)),
    "signed with another key": lambda cloud: _signed(cloud, signed_by=shared_certificate(days=91)),
    "scope without .default": lambda cloud: _signed(cloud, form={"scope": "https://vault.azure.net"}),
    "unknown resource": lambda cloud: _signed(cloud, form={"scope": "https://nowhere.example/.default"}),
    "device code pending": lambda cloud: cloud.poll(cloud.device_code()["device_code"]),
    # Without an interval, the earlier of two polls has to be the later one.
    "polled too fast": lambda cloud: _polled_later(cloud, timedelta(seconds=1), timedelta(0)),
    "device code declined": lambda cloud: _decided(cloud, "decline"),
    "unknown device code": lambda cloud: cloud.poll("x"),
    "device code expired": lambda cloud: _polled_later(cloud, timedelta(0), timedelta(minutes=15)),
    "unknown refresh token": lambda cloud: cloud.refresh("x"),
    "password changed since": lambda cloud: _refreshed(cloud, password_changed=True),
    "idle refresh token": lambda cloud: _refreshed(cloud, timedelta(days=91)),
}


def application(cloud: CoverageCloud, **properties: Any) -> dict[str, Any]:
    answer = cloud.graph("POST", "/applications", {"displayName": "app", **properties})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def _path(cloud: CoverageCloud, **properties: Any) -> str:
    """Of a new application."""
    return f"/applications/{application(cloud, **properties)['id']}"


def _keys(cloud: CoverageCloud, **changed: Any) -> httpx.Response:
    key = {
        "type": "AsymmetricX509Cert",
        "usage": "Verify",
        "key": base64.b64encode(registration(shared_certificate()).certificate).decode(),
        **changed,
    }
    return cloud.graph("PATCH", _path(cloud), {"keyCredentials": [key]})


def _twice(cloud: CoverageCloud) -> httpx.Response:
    body = {"appId": application(cloud)["appId"]}
    cloud.graph("POST", "/servicePrincipals", body)
    return cloud.graph("POST", "/servicePrincipals", body)


def _deleted_name(cloud: CoverageCloud) -> httpx.Response:
    cloud.graph("DELETE", _path(cloud, uniqueName="mine"))
    return cloud.graph("POST", "/applications", {"displayName": "app", "uniqueName": "mine"})


def _owner_twice(cloud: CoverageCloud) -> httpx.Response:
    reference = {"@odata.id": f"https://graph.microsoft.com/v1.0/directoryObjects/{cloud.deployer.object_id}"}
    return cloud.graph("POST", f"{_path(cloud)}/owners/$ref", reference)


def _foreign_principal(cloud: CoverageCloud) -> httpx.Response:
    return cloud.graph("POST", "/servicePrincipals", {"appId": ONE})


GRAPH: Final[Mapping[str, Provoke]] = {
    "no bearer": lambda cloud: cloud.graph("GET", "/applications", anonymous=True),
    "not the owner": lambda cloud: cloud.graph("DELETE", f"/servicePrincipals/{cloud.nobody().object_id}"),
    "principal of a foreign application": _foreign_principal,
    "principal without application": after(
        lambda cloud: cloud.cloud.directory.grant(cloud.deployer.object_id, "Application.ReadWrite.All"),
        then=_foreign_principal,
    ),
    "second principal of an application": _twice,
    "absent object": lambda cloud: cloud.graph("GET", f"/applications/{ONE}"),
    "unknown property": lambda cloud: cloud.graph("POST", "/applications", {"displayName": "a", "x": 1}),
    "another object's id in a PATCH": lambda cloud: cloud.graph("PATCH", _path(cloud), {"id": ONE}),
    "search without the header": lambda cloud: cloud.graph("GET", "/applications", search='"displayName:a"'),
    "application that asks for itself as a user": lambda cloud: cloud.graph("GET", "/me"),
    "too many ids": lambda cloud: cloud.graph("POST", "/directoryObjects/getByIds", {"ids": [ONE] * 1001}),
    "application without a name": lambda cloud: cloud.graph("POST", "/applications", {}),
    "unique name of a deleted application": _deleted_name,
    "owner twice": _owner_twice,
    "key id that is not a UUID": lambda cloud: _keys(cloud, keyId="one"),
    "key that is not a certificate": lambda cloud: _keys(cloud, key="eA=="),
    "key of another usage": lambda cloud: _keys(cloud, usage="Sign"),
    "key that begins before its certificate": lambda cloud: _keys(cloud, startDateTime="2020-01-01T00:00:00Z"),
    "key that ends after its certificate": lambda cloud: _keys(cloud, endDateTime="2099-01-01T00:00:00Z"),
    "key that has ended": lambda cloud: _keys(cloud, endDateTime=rfc3339(clock.now() - timedelta(days=1))),
    "key that lives longer than the policy allows": after(lambda cloud: cloud.hold(certificate_days=1), then=_keys),
    "removal of an unknown client secret": lambda cloud: cloud.graph(
        "POST", f"{_path(cloud)}/removePassword", {"keyId": ONE}
    ),
    "filter that is not understood": lambda cloud: cloud.graph("GET", "/applications", filter="notes ne 'x'"),
}


def _deleted_secret(cloud: CoverageCloud, method: str, path: str, body: object = None, **vault: Any) -> httpx.Response:
    cloud.create_vault(**vault)
    cloud.vault("PUT", "/secrets/one", {"value": "v"})
    cloud.vault("DELETE", "/secrets/one")
    return cloud.vault(method, path, body)


def certificates(cloud: CoverageCloud, method: str, path: str, body: object = None) -> httpx.Response:
    return cloud.vault(method, path, body, caller=cloud.principal(("Key Vault Certificates Officer", SUBSCRIPTION)))


def _odd_size(cloud: CoverageCloud) -> httpx.Response:
    officer = cloud.principal(("Key Vault Crypto Officer", SUBSCRIPTION))
    return cloud.vault("POST", "/keys/etcd/create", {"kty": "RSA", "key_size": 1024}, caller=officer)


def _no_version(cloud: CoverageCloud) -> httpx.Response:
    token = cloud.cloud.tokens.issue(cloud.deployer, "https://vault.azure.net")
    return ask(cloud.keyvault, _VAULT, "GET", "/secrets/one", token=token)


KEY_VAULT: Final[Mapping[str, Provoke]] = {
    "no bearer": lambda cloud: cloud.without(cloud.keyvault, _VAULT, "GET", "/secrets/one"),
    "unknown vault": lambda cloud: cloud.vault("GET", "/secrets/one", host="kv-2.vault.azure.net"),
    "no api-version": _no_version,
    "no role": lambda cloud: cloud.vault("GET", "/secrets/one", caller=cloud.nobody()),
    "absent secret": lambda cloud: cloud.vault("GET", "/secrets/one"),
    "disabled secret": after(
        lambda cloud: cloud.vault("PUT", "/secrets/one", {"value": "v", "attributes": {"enabled": False}}),
        then=lambda cloud: cloud.vault("GET", "/secrets/one"),
    ),
    "name of a deleted secret": lambda cloud: _deleted_secret(cloud, "PUT", "/secrets/one", {"value": "v"}),
    "purge under protection": lambda cloud: _deleted_secret(
        cloud, "DELETE", "/deletedsecrets/one", enablePurgeProtection=True
    ),
    "write during a failover": after(
        lambda cloud: cloud.hold(read_only_vaults=("kv-idstack-local",)),
        then=lambda cloud: cloud.vault("PUT", "/secrets/one", {"value": "v"}),
    ),
    "absent certificate": lambda cloud: certificates(cloud, "GET", "/certificates/one"),
    "certificate that cannot be read": lambda cloud: certificates(
        cloud, "POST", "/certificates/one/import", {"value": "eA=="}
    ),
    "subject of a certificate": lambda cloud: certificates(
        cloud, "POST", "/certificates/one/create", {"policy": {"issuer": {"name": "Self"}}}
    ),
    "size of a key": _odd_size,
    "secret without a value": lambda cloud: cloud.vault("PUT", "/secrets/one", {}),
    "secret name": lambda cloud: cloud.vault("PUT", "/secrets/one_two", {"value": "v"}),
    "secret of more than 25 KB": lambda cloud: cloud.vault("PUT", "/secrets/one", {"value": "v" * 25601}),
    "operation that is not emulated": lambda cloud: cloud.vault("POST", "/certificates/one/merge"),
}


IMDS: Final[Mapping[str, Provoke]] = {
    "no Metadata header": lambda cloud: cloud.metadata({}, **ASKED),
    "missing parameter": lambda cloud: cloud.metadata(METADATA, resource="https://vault.azure.net"),
    "identity that is not attached": lambda cloud: cloud.metadata(METADATA, **ASKED, client_id=str(uuid.uuid4())),
    "several identities, none named": after(
        lambda cloud: cloud.attach(cloud.managed_identity("one"), cloud.managed_identity("two")),
        then=lambda cloud: cloud.metadata(METADATA, **ASKED),
    ),
    "two selectors": lambda cloud: cloud.metadata(METADATA, **ASKED, client_id=ONE, object_id=ONE),
    "unknown resource": after(
        lambda cloud: cloud.attach(cloud.managed_identity("one")),
        then=lambda cloud: cloud.metadata(METADATA, **{**ASKED, "resource": "https://nowhere.example"}),
    ),
}
