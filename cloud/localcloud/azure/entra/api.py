"""The sign-in endpoints at the root of the authority: metadata, signing keys, tokens, device codes.

Left out on purpose: the authorization code flow.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import jwt
from cryptography import x509
from jwt.utils import base64url_encode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from localcloud.azure.arm.managedidentity import FEDERATED_CREDENTIALS
from localcloud.azure.entra import errors, sessions
from localcloud.azure.entra.federation import Issuers, Trust, unverified
from localcloud.azure.entra.sessions import Sessions
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.http import service_app
from localcloud.azure.shared.refusals import not_emulated, refusal
from localcloud.azure.shared.understood import Understood, is_neutral, operation
from localcloud.azure.tenant.directory import Replica, Replicas
from localcloud.azure.tenant.objects import KeyCredential, ServicePrincipal, User
from localcloud.azure.tenant.tokens import PUBLIC_CLIENTS, exchange_issuer, first_party_audiences
from localcloud.core import clock
from localcloud.core.arm_ids import is_uuid
from localcloud.core.clouds import CLOUDS, authorities, named
from localcloud.core.documents import document

# The forms of token requests, and their allowed members (RFC 6749 3.2 would ignore others).
#
# Members that say nothing about the request are those of MSAL for diagnostics, which some of its libraries send as
# headers and others in the form.

READS: Final = Understood.of("client-request-id", body=None)
"""What a token request has beside its form."""
_OF_ALL: Final = frozenset({"grant_type", "client_id", "client_info", "claims"})
_PROOFS: Final = frozenset({"client_assertion", "client_assertion_type", "client_secret"})
OF_A_CLIENT: Final = _OF_ALL | _PROOFS | {"scope"}
OF_A_CLIENT_V1: Final = _OF_ALL | _PROOFS | {"resource"}
# MSAL sends the code of a device under both of its names.
OF_A_DEVICE: Final = _OF_ALL | {"device_code", "code", "scope"}
OF_A_SESSION: Final = _OF_ALL | {"refresh_token", "scope"}
OF_A_BEGINNING: Final = frozenset({"client_id", "scope", "claims"})


async def read_form(request: Request) -> dict[str, str]:
    """The form of a request; raises 501 for a repeated member."""
    pairs = parse_qsl((await request.body()).decode(errors="replace"))
    form = dict(pairs)
    if len(form) < len(pairs):
        raise not_emulated("entra", "a parameter more than once")
    return form


def require_members(form: Mapping[str, str], *names: str) -> None:
    """Raises 900144 for a parameter that is missing."""
    for name in names:
        if not form.get(name):
            raise refusal("invalid_request no parameter", name=name)


def check_form(form: Mapping[str, str], known: Collection[str]) -> None:
    """Raises 901002 for a resource in version 2.0, and 501 for a parameter that would be ignored."""
    for name in form:
        if name == "resource" and "scope" in known:
            raise refusal("invalid_request resource in version 2.0")
        if name not in known and not is_neutral(name):
            raise not_emulated("entra", f"the parameter {name}")
    if form.get("claims"):
        _check_claims_parameter(form["claims"])
    if form.get("code", form.get("device_code")) != form.get("device_code"):
        raise not_emulated("entra", "the parameter code")


def _check_claims_parameter(text: str) -> None:
    """A client may state its capabilities (`xms_cc`), which change nothing here, and request a new start (`nbf`).

    msi-dataplane requests the latter to bypass caches; every token has it. Raises 501 for any other claim.
    """
    try:
        asked = json.loads(text)
    except ValueError:
        asked = None
    parts = asked if isinstance(asked, dict) else {"": None}
    for name, claims in parts.items():
        if name != "access_token" or not isinstance(claims, dict) or claims.keys() - {"xms_cc", "nbf"}:
            raise not_emulated("entra", "the parameter claims, but for xms_cc and nbf,")


# Client assertions: the JWT that an application signs with its certificate's key instead of sending a secret.
#
# Rules: RFC 7523 3, and Microsoft's page on certificate credentials: RS256 or PS256, the certificate named by `x5t`
# (SHA-1), `x5t#S256`, or `kid` with the value of `x5t`, `iss` = `sub` = client id. `aud` is the token endpoint, or the
# issuer as earlier texts of that page have it, and never a list. A chain in `x5c` proves nothing here: trust by subject
# name and issuer is for first-party applications.

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ALGORITHMS = ("RS256", "PS256")
_SKEW = timedelta(minutes=5)
# Of 700027, the fault and Entra's reason.
_NOT_REGISTERED = ("not registered on application", "The key was not found")
_EXPIRED = ("expired on application", "The key used is expired")
_WRONG_SIGNATURE = (None, "The provided signature value did not match the expected signature value")


def is_own_assertion(assertion: str) -> bool:
    """Whether the client itself made the assertion, even a wrong one, and not an issuer, whose name is an https URL.

    A thumbprint in the header does not decide it: GitHub's tokens have one as well.
    """
    return not str(unverified(assertion)[1].get("iss")).startswith("https://")


def verify_assertion(
    assertion: str, *, client_id: str, audiences: Collection[str], keys: Sequence[KeyCredential], now: datetime
) -> KeyCredential:
    """The registered certificate that signed `assertion`.

    Args:
        client_id: the form's `client_id`, in lower case.
        audiences: the token endpoint as this authority announces it, and its other names.
        keys: the certificates that the serving replica knows for the application.
        now: Entra's clock, at which certificate and assertion must be valid.

    Raises:
        ServiceError: 50027, 700021, 700023, 700024 or 700027, checked in Entra's order: certificate first, then claims.
    """
    header, _ = unverified(assertion)
    if header.get("alg") not in _ALGORITHMS:
        raise errors.malformed(f"The signature algorithm must be {' or '.join(_ALGORITHMS)}.")
    named, digest = _thumbprint(header)
    key = next((key for key in keys if hashlib.new(named, key.certificate).digest() == digest), None)
    thumbprint = digest.hex().upper()
    if key is None:
        raise errors.bad_certificate(*_NOT_REGISTERED, client_id, thumbprint)
    certificate = x509.load_der_x509_certificate(key.certificate)
    if not max(key.start, certificate.not_valid_before_utc) <= now <= min(key.end, certificate.not_valid_after_utc):
        raise errors.bad_certificate(*_EXPIRED, client_id, thumbprint, key)
    try:
        claims = jwt.decode(
            assertion,
            certificate.public_key(),  # type: ignore[arg-type]  # RSA was checked when the certificate was registered
            algorithms=list(_ALGORITHMS),
            # The claims are verified below: each has a code of its own.
            options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
        )
    except jwt.InvalidTokenError:
        raise errors.bad_certificate(*_WRONG_SIGNATURE, client_id, thumbprint, key) from None
    _check_claims(claims, client_id, audiences, now)
    return key


def _thumbprint(header: Mapping[str, Any]) -> tuple[str, bytes]:
    # HashiCorp's go-azure-sdk names the certificate by `kid` alone, with the value of `x5t`.
    for name, algorithm in (("x5t#S256", "sha256"), ("x5t", "sha1"), ("kid", "sha1")):
        text = header.get(name)
        if isinstance(text, str):
            try:
                return algorithm, base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            except binascii.Error:
                raise errors.malformed(f"The header {name} is not base64url text.") from None
    raise errors.malformed("No certificate thumbprint specified in token header.")


def _check_claims(claims: dict[str, Any], client_id: str, audiences: Collection[str], now: datetime) -> None:
    if not str(claims.get("iss")).lower() == str(claims.get("sub")).lower() == client_id:
        raise refusal("invalid_client another client")
    audience = claims.get("aud")
    if not isinstance(audience, str):
        raise errors.malformed("The claim aud is a text.")
    if audience.lower() not in {accepted.lower() for accepted in audiences}:
        raise refusal("invalid_client another audience")
    expires = claims.get("exp")
    valid_from = claims.get("nbf", claims.get("iat", 0))
    if not isinstance(expires, int | float) or not isinstance(valid_from, int | float):
        raise errors.malformed("The claims exp and nbf are numbers of seconds.")
    begin, end = datetime.fromtimestamp(valid_from, UTC), datetime.fromtimestamp(expires, UTC)
    if not begin - _SKEW <= now <= end + _SKEW:
        raise errors.out_of_time(now, begin, end)


_OPENID_SCOPES = {"openid", "offline_access", "profile", "email"}
_OF_ANY_TENANT = frozenset({"common", "organizations", "consumers"})
_DEFAULT = "/.default"
_FIRST_PARTY = frozenset(first_party_audiences())
_NOT_KEPT = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_INSTANCES = Understood.of("api-version authorization_endpoint")
# The path of Entra's page for device codes, shared by all tenants.
_PAGE = "/common/oauth2/deviceauth"


def app(cloud: LocalAzure, issuers: Issuers | None = None) -> Starlette:
    """Entra's application, to be served over TLS (clients refuse a plain-text authority).

    `issuers` are those whose tokens federated credentials trust; None: on this machine, by the machine's authorities.
    """
    entra = _Entra(cloud, issuers or Issuers())
    routes = [
        operation("entra", "/{tenant}/v2.0/.well-known/openid-configuration", entra.metadata, "GET"),
        operation("entra", "/{tenant}/.well-known/openid-configuration", entra.metadata_v1, "GET"),
        operation("entra", "/common/discovery/instance", entra.instances, "GET", reads=_INSTANCES),
        operation("entra", "/{tenant}/discovery/v2.0/keys", entra.keys, "GET"),
        operation("entra", "/{tenant}/oauth2/v2.0/token", entra.token, "POST", reads=READS),
        operation("entra", "/{tenant}/oauth2/token", entra.token_v1, "POST", reads=READS),
        operation("entra", "/{tenant}/oauth2/v2.0/devicecode", entra.device_code, "POST", reads=READS),
        operation("entra", _PAGE, entra.page, "GET", reads=Understood.of("otc")),
        operation("entra", _PAGE, entra.page, "POST", reads=Understood.of("otc", body=None)),
    ]
    return service_app("entra", routes, faults=cloud.faults, holder=cloud.holder, render=errors.render)


class _Entra:
    def __init__(self, cloud: LocalAzure, issuers: Issuers) -> None:
        self._cloud = cloud
        self._issuers = issuers
        self._tenant = cloud.tenant_id
        self._replicas = Replicas(
            lambda: cloud.holder.now().replica_delays or cloud.faults.replica_delays, cloud.faults.random()
        )
        self._sessions = Sessions(cloud.store, cloud.faults, cloud.people)

    async def metadata(self, request: Request) -> Response:
        self._check_tenant(request, of_metadata=True)
        return JSONResponse(document(__file__, "v2.0", root=self._root(request)))

    async def metadata_v1(self, request: Request) -> Response:
        self._check_tenant(request)
        return JSONResponse(document(__file__, "v1.0", root=self._root(request), issuer=self._cloud.tokens.issuer))

    async def instances(self, request: Request) -> Response:
        """The names of each cloud's authority, which clients ask for before they trust one they do not know."""
        asked = urlsplit(request.query_params.get("authorization_endpoint", "")).hostname or ""
        authority = named(asked)
        if authority is None or authority.service != "entra":
            raise refusal("invalid_instance", host=asked)
        clouds = [authorities(cloud) for cloud in CLOUDS.values()]
        return JSONResponse(
            {
                "tenant_discovery_endpoint": f"https://{asked}/{self._tenant}/v2.0/.well-known/openid-configuration",
                "api-version": "1.1",
                "metadata": [
                    {"preferred_network": names[0], "preferred_cache": names[0], "aliases": list(names)}
                    for names in clouds
                ],
            }
        )

    async def keys(self, request: Request) -> Response:
        self._check_tenant(request)
        return JSONResponse(self._cloud.tokens.jwks())

    async def token(self, request: Request) -> Response:
        self._check_tenant(request)
        form = await read_form(request)
        require_members(form, "grant_type", "client_id")
        match form["grant_type"]:
            case "client_credentials":
                check_form(form, OF_A_CLIENT)
                require_members(form, "scope")
                resource = self._resource(form["scope"])
                return JSONResponse(*await self._client_credentials(form, resource, self._root(request)))
            case grant if grant in sessions.DEVICE_CODE_GRANTS:
                check_form(form, OF_A_DEVICE)
                user, resource = self._sessions.redeem(form)
                return self._session(request, user, form, resource)
            case "refresh_token":
                check_form(form, OF_A_SESSION)
                require_members(form, "refresh_token")
                user = self._sessions.user_of(form)
                return self._session(request, user, form, self._resource(form.get("scope", "")))
        raise refusal("unsupported_grant_type", grant=form["grant_type"])

    async def token_v1(self, request: Request) -> Response:
        """A token by client credentials as version 1.0 gives it: for a `resource`, with its dates as text."""
        self._check_tenant(request)
        form = await read_form(request)
        require_members(form, "grant_type", "client_id", "resource")
        if form["grant_type"] != "client_credentials":
            raise not_emulated("entra", f"the grant {form['grant_type']} of version 1.0")
        check_form(form, OF_A_CLIENT_V1)
        resource = self._known(form["resource"])
        granted, _, headers = await self._client_credentials(form, resource, self._root(request))
        now = int(clock.now().timestamp())
        dates = {"expires_on": str(now + granted["expires_in"]), "not_before": str(now), "resource": resource}
        texts = {name: str(value) for name, value in granted.items()}
        return JSONResponse({**texts, **dates}, headers=headers)

    async def device_code(self, request: Request) -> Response:
        self._check_tenant(request)
        form = await read_form(request)
        check_form(form, OF_A_BEGINNING)
        require_members(form, "client_id", "scope")
        client_id = form["client_id"].lower()
        if client_id not in PUBLIC_CLIENTS and self._cloud.directory.application_by_app(client_id) is None:
            raise refusal("unauthorized_client no application", client=client_id, tenant=self._tenant)
        resource = self._resource(form["scope"])
        page = f"https://{request.headers['host']}{_PAGE}"
        return JSONResponse(self._sessions.begin(client_id, resource, page), headers=_NOT_KEPT)

    async def page(self, request: Request) -> Response:
        form = await read_form(request)
        check_form(form, {"otc", "login", "action"})
        if request.method == "GET":
            return HTMLResponse(sessions.page(request.query_params.get("otc", "")))
        code = form.get("otc", "")
        if not self._sessions.decide(code, form.get("login", ""), approve=form.get("action") == "approve"):
            return HTMLResponse(sessions.page(code, "There is no such code, or no such user."), status_code=400)
        return HTMLResponse(sessions.page("", "Done. You can close this window."))

    async def _client_credentials(
        self, form: dict[str, str], resource: str, root: str
    ) -> tuple[dict[str, Any], int, dict[str, str]]:
        """Content, status and headers of the answer."""
        replica = self._replicas.choose()
        principal = await self._authenticate(form, root, replica)
        lifetime = self._cloud.tokens.lifetime()
        body = _granted(self._cloud.tokens.issue(principal, resource, lifetime=lifetime), lifetime)
        # Like Entra, name the server that answered.
        return body, 200, {**_NOT_KEPT, "x-ms-ests-server": replica.name}

    def _session(self, request: Request, user: User, form: dict[str, str], resource: str) -> Response:
        client_id, tokens = form["client_id"], self._cloud.tokens
        lifetime = tokens.lifetime()
        body = {
            **_granted(tokens.issue_for_user(user, client_id, resource, lifetime=lifetime), lifetime),
            "scope": f"{resource}{_DEFAULT}",
            "refresh_token": self._sessions.refresh_token(user, client_id),
            "id_token": tokens.id_token(user, client_id, f"{self._root(request)}/v2.0"),
        }
        if form.get("client_info") == "1":
            # Microsoft's own addition: MSAL identifies an account by it.
            info = json.dumps({"uid": user.object_id, "utid": self._tenant}).encode()
            body["client_info"] = base64url_encode(info).decode()
        return JSONResponse(body, headers=_NOT_KEPT)

    async def _authenticate(self, form: dict[str, str], root: str, replica: Replica) -> ServicePrincipal:
        """The principal that the form's credential authenticates, as far as the replica knows; raises ServiceError."""
        client_id = form["client_id"].lower()
        principal, keys = self._client(client_id, replica)
        if "client_assertion" in form:
            if form.get("client_assertion_type") != ASSERTION_TYPE:
                raise refusal("invalid_request no parameter", name="client_assertion_type")
            text = form["client_assertion"]
            if is_own_assertion(text):
                now = clock.now() + timedelta(seconds=self._cloud.holder.now().date_shift.get("entra", 0.0))
                # Microsoft's page on certificate credentials has named both the token endpoint and the issuer.
                accepted = (f"{root}/oauth2/v2.0/token", f"{root}/v2.0", f"{root}/oauth2/token")
                verify_assertion(text, client_id=client_id, audiences=accepted, keys=keys, now=now)
            else:
                own = {exchange_issuer(cloud, self._tenant): self._cloud.tokens.jwks() for cloud in CLOUDS.values()}
                await self._issuers.verify(text, self._trusted_by(principal), own)
        elif "client_secret" in form:
            self._check_secret(principal, form["client_secret"])
        else:
            raise refusal("invalid_client no credential")
        if principal.properties.get("accountEnabled") is False:
            raise refusal("unauthorized_client disabled", client=client_id, name=principal.display_name)
        return principal

    def _trusted_by(self, principal: ServicePrincipal) -> list[Trust]:
        """The federated credentials of a principal: an application's from Graph, a managed identity's from ARM."""
        if principal.resource_id is not None:
            resources = Resources(self._cloud.store).below(principal.resource_id, FEDERATED_CREDENTIALS)
            credentials = [resource["properties"] for resource in resources]
        else:
            application = self._cloud.directory.application_by_app(principal.app_id)
            credentials = [] if application is None else list(application.federated)
        return [
            Trust(credential["issuer"], credential["subject"], audience)
            for credential in credentials
            for audience in credential["audiences"]
        ]

    def _check_secret(self, principal: ServicePrincipal, value: str) -> None:
        """A client secret may be the application's or the service principal's own, as a certificate may."""
        application = self._cloud.directory.application_by_app(principal.app_id)
        passwords = (*principal.passwords, *(() if application is None else application.passwords))
        password = next((password for password in passwords if password.is_of(value)), None)
        if password is None:
            raise refusal("invalid_client wrong secret", client=principal.app_id)
        if password.end <= clock.now():
            raise refusal("invalid_client expired secret", client=principal.app_id)

    def _client(self, client_id: str, replica: Replica) -> tuple[ServicePrincipal, tuple[KeyCredential, ...]]:
        """The principal that signs in under `client_id` and the certificates which the replica knows for it."""
        application = self._cloud.directory.application_by_app(client_id)
        principal = self._cloud.directory.service_principal_by_app(client_id)
        keys: tuple[KeyCredential, ...] = ()
        # A managed identity has a service principal and no application.
        if application is not None and application.created_at <= replica.knows_until:
            keys = application.keys
        elif principal is None or principal.kind == "Application":
            raise refusal("unauthorized_client no application", client=client_id, tenant=self._tenant)
        if principal is None or principal.created_at > replica.knows_until:
            raise refusal("unauthorized_client no principal", client=client_id, tenant=self._tenant)
        held = self._cloud.holder.now()
        known = (key for key in (*keys, *principal.keys) if key.known_at(replica.knows_until))
        return principal, tuple(key for key in known if held.accepts(client_id, key.added_at))

    def _resource(self, scope: str) -> str:
        """The one resource that a client-credentials scope names, as written there."""
        scopes = [name for name in scope.split() if name not in _OPENID_SCOPES]
        if len(scopes) != 1 or not scopes[0].endswith(_DEFAULT):
            raise refusal("invalid_scope", scope=scope)
        return self._known(scopes[0].removesuffix(_DEFAULT))

    def _known(self, resource: str) -> str:
        resource = resource.lower() if is_uuid(resource) else resource
        if resource not in _FIRST_PARTY and not self._cloud.directory.offers(resource):
            raise refusal("invalid_resource", resource=resource, tenant=self._tenant)
        return resource

    def _check_tenant(self, request: Request, *, of_metadata: bool = False) -> None:
        tenant = request.path_params["tenant"]
        if tenant.lower() in _OF_ANY_TENANT:
            raise not_emulated("entra", f"the authority {tenant}")
        if tenant.lower() != self._tenant:
            raise (
                refusal("invalid_tenant", tenant=tenant)
                if of_metadata
                else refusal("invalid_request unknown tenant", tenant=tenant)
            )

    def _root(self, request: Request) -> str:
        # With the host that the client called: clients require that the issuer's host is the authority's.
        return f"https://{request.headers['host']}/{self._tenant}"


def _granted(token: str, lifetime: timedelta) -> dict[str, Any]:
    seconds = int(lifetime.total_seconds())
    return {"token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": token}
