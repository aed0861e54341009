"""Access tokens as Entra issues them (version 1.0, RS256), to applications and for users, and their verification.

Tokens for the AKS server application carry the object ids of groups, up to Entra's limit for a JWT; beyond it they name
the endpoint to ask instead (the overage claim).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, cast

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from jwt.utils import base64url_encode, to_base64url_uint

from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.held import FaultHolder
from localcloud.azure.tenant.objects import People, ServicePrincipal, User
from localcloud.core import clock
from localcloud.core.certificates import private_pem
from localcloud.core.clouds import AKS_CLIENT_APP_ID, AKS_SERVER_APP_ID, CLOUDS, DEFAULT_CLOUD, Cloud
from localcloud.core.store import Store

GRAPH_APP_ID: Final = "00000003-0000-0000-c000-000000000000"
_ARM_APP_ID: Final = "797f4846-ba00-4fd7-ba43-dac1f8f63013"
_VAULT_APP_ID: Final = "cfa8b339-82a2-471a-a3c9-0fc0be7a4093"
_STORAGE_APP_ID: Final = "e406a681-f3d4-42a8-90b6-c2b029497af1"


@dataclass(frozen=True)
class Audiences:
    """What the `aud` of a token for each service of one cloud may be; each tuple begins with the usual one."""

    arm: tuple[str, ...]
    vault: tuple[str, ...]
    graph: tuple[str, ...]
    storage: tuple[str, ...]


def audiences(cloud: Cloud) -> Audiences:
    return Audiences(
        arm=_with_and_without_slash(cloud.arm_scope.removesuffix("//.default"), cloud.arm_endpoint),
        vault=_with_and_without_slash(cloud.vault_scope.removesuffix("/.default")),
        graph=_with_and_without_slash(cloud.graph_endpoint),
        storage=_with_and_without_slash(cloud.storage_scope.removesuffix("/.default")),
    )


def first_party_audiences() -> Iterator[str]:
    """Everything that names a first-party service in a scope: its application id and its identifier URIs."""
    yield from (_ARM_APP_ID, _VAULT_APP_ID, GRAPH_APP_ID, _STORAGE_APP_ID, AKS_SERVER_APP_ID)
    for cloud in CLOUDS.values():
        accepted = audiences(cloud)
        yield from (*accepted.arm, *accepted.vault, *accepted.graph, *accepted.storage)


EXCHANGE: Final = "api://AzureADTokenExchange"
"""The resource whose tokens a managed identity shows to Entra as assertions of an application."""


def exchange_issuer(cloud: Cloud, tenant: str) -> str:
    """The issuer of a managed identity's token for `EXCHANGE`, as a federated credential names it."""
    return f"{cloud.authority_host.rstrip('/')}/{tenant}/v2.0"


def is_graph(resource: str) -> bool:
    """Whether this is the Graph of any cloud, as tokens name it."""
    return resource == GRAPH_APP_ID or any(resource in audiences(cloud).graph for cloud in CLOUDS.values())


def _with_and_without_slash(*addresses: str) -> tuple[str, ...]:
    return tuple(f"{address}{end}" for address in addresses for end in ("", "/"))


PUBLIC_AUDIENCES: Final = audiences(CLOUDS[DEFAULT_CLOUD])
"""Those of the public cloud, whose names the local addresses have."""

PUBLIC_CLIENTS: Final = frozenset({AKS_CLIENT_APP_ID})
"""Application ids of the first-party clients with which a person signs in; they have no secret."""

_KIND = "entra-signing-key"
_KEY = "current"
_BACKDATED = timedelta(
    minutes=5
)  # Entra's tokens are valid from shortly before their issue, for clocks that are behind

# learn.microsoft.com/entra/identity-platform/access-token-claims-reference, groups overage claim.
_MOST_GROUPS = 200


class InvalidTokenError(Exception):
    """A bearer token that a service must not accept; `reason` does not contain the token."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Caller:
    """The principal of a verified bearer token.

    `roles` are the application permissions for the audience; `scopes` the permissions delegated by a user.
    """

    tenant_id: str
    client_id: str
    object_id: str
    roles: frozenset[str]
    scopes: frozenset[str]


class Tokens:
    """Issues and verifies the tenant's access tokens with one RSA key, kept sealed in the store."""

    def __init__(self, store: Store, faults: Faults, tenant_id: str, people: People, holder: FaultHolder) -> None:
        self._store = store
        self._people = people
        self._tenant_id = tenant_id
        self._chance = faults.random()
        self._lifetimes = faults.token_lifetime
        self._holder = holder
        self.issuer = f"https://sts.windows.net/{tenant_id}/"

    def lifetime(self) -> timedelta:
        """The lifetime of the next token, at random within `Faults.token_lifetime`, or the held one."""
        return timedelta(seconds=self._chance.randint(*(self._holder.now().token_lifetime or self._lifetimes)))

    def issue(self, principal: ServicePrincipal, resource: str, *, lifetime: timedelta | None = None) -> str:
        """A token of `principal` for `resource` (identifier URI or application id, as requested).

        `lifetime` defaults to `self.lifetime()`. Valid from five minutes ago, as Entra has it.
        """
        claims = {
            "appid": principal.app_id,
            "appidacr": "2",
            "idp": self.issuer,
            "idtyp": "app",
            "oid": principal.object_id,
            "sub": principal.object_id,
            **self._groups(principal.object_id, "servicePrincipals", resource),
        }
        if principal.resource_id is not None:
            claims["xms_mirid"] = principal.resource_id
        if principal.roles and is_graph(resource):
            claims["roles"] = list(principal.roles)
        return self._signed(claims, resource, lifetime)

    def issue_for_exchange(self, principal: ServicePrincipal, resource: str, issuer: str, lifetime: timedelta) -> str:
        """A token of version 2.0 that a managed identity shows as the assertion of an application.

        Source: "Configure an application to trust a managed identity": issuer of version 2.0, the object id as subject.
        """
        claims = {
            "azp": principal.app_id,
            "azpacr": "2",
            "idtyp": "app",
            "iss": issuer,
            "oid": principal.object_id,
            "sub": principal.object_id,
            "ver": "2.0",
        }
        return self._signed(claims, resource, lifetime)

    def issue_for_user(
        self,
        user: User,
        client_id: str,
        resource: str,
        *,
        lifetime: timedelta | None = None,
        scopes: Sequence[str] = ("user.read",),
    ) -> str:
        """A token of `user`, who signed in through the public client `client_id`, for `resource`."""
        claims = {
            "amr": ["pwd"],
            "appid": client_id,
            "appidacr": "0",
            "idtyp": "user",
            "name": user.display_name,
            "oid": user.object_id,
            "scp": " ".join(scopes),
            "sub": _pairwise(user, client_id),
            "unique_name": user.user_principal_name,
            "upn": user.user_principal_name,
            **self._groups(user.object_id, "users", resource),
        }
        return self._signed(claims, resource, lifetime)

    def on_behalf_of(self, bearer: str, client_id: str, resource: str, scopes: Sequence[str]) -> str:
        """A token for `resource` of the user who gave the service `client_id` their `bearer` (OAuth on-behalf-of).

        On Azure the service also authenticates itself in this exchange; only AKS has the credential for it. Raises
        InvalidTokenError for a bearer of another service, or of an application, which delegates nothing.
        """
        user = self._people.user(self.verify(bearer, [client_id]).object_id)
        if user is None:
            raise InvalidTokenError("The access token is not of a user, so nobody can act on their behalf.")
        return self.issue_for_user(user, client_id, resource, scopes=scopes)

    def id_token(self, user: User, client_id: str, issuer: str) -> str:
        """An id token (version 2.0, OpenID Connect Core 2) for the client; no service accepts it as a bearer."""
        claims = {
            "iss": issuer,
            "name": user.display_name,
            "oid": user.object_id,
            "preferred_username": user.user_principal_name,
            "sub": _pairwise(user, client_id),
            "ver": "2.0",
        }
        return self._signed(claims, client_id, None)

    def _groups(self, object_id: str, collection: str, resource: str) -> dict[str, Any]:
        """The claims about groups, which only the AKS server application asks for."""
        groups = self._people.groups_of(object_id) if resource == AKS_SERVER_APP_ID else []
        if len(groups) > _MOST_GROUPS:
            source = f"https://graph.windows.net/{self._tenant_id}/{collection}/{object_id}/getMemberObjects"
            return {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": source}}}
        return {"groups": groups} if groups else {}

    def _signed(self, claims: Mapping[str, Any], resource: str, lifetime: timedelta | None) -> str:
        now = clock.now()
        whole = {
            "aud": resource,
            "iss": self.issuer,
            "iat": _seconds(now - _BACKDATED),
            "nbf": _seconds(now - _BACKDATED),
            "exp": _seconds(now + (lifetime or self.lifetime())),
            "tid": self._tenant_id,
            "uti": base64url_encode(uuid.uuid4().bytes).decode(),
            "ver": "1.0",
            **claims,
        }
        return jwt.encode(whole, self._key, algorithm="RS256", headers={"kid": self._key_id})

    def verify(self, bearer: str, audiences: Collection[str]) -> Caller:
        """The caller who sends `bearer` to a service of these `audiences`; raises InvalidTokenError like `claims`."""
        claims = self.claims(bearer, audiences)
        roles, scopes = frozenset(claims.get("roles", ())), frozenset(claims.get("scp", "").split())
        return Caller(claims["tid"], claims["appid"], claims["oid"], roles, scopes)

    def claims(self, bearer: str, audiences: Collection[str]) -> Mapping[str, Any]:
        """The verified claims of `bearer` for a service known as `audiences`; raises InvalidTokenError."""
        try:
            claims: Mapping[str, Any] = jwt.decode(
                bearer,
                self._key.public_key(),
                algorithms=["RS256"],
                issuer=self.issuer,
                audience=list(audiences),
                # The dates are verified below, on the local cloud's own clock.
                options={"verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except jwt.InvalidAudienceError:
            raise InvalidTokenError("The access token has been obtained for the wrong audience or resource.") from None
        except jwt.InvalidIssuerError:
            raise InvalidTokenError("The access token is from the wrong issuer.") from None
        except jwt.InvalidTokenError:
            raise InvalidTokenError(
                "The access token is invalid: its signature or form could not be verified."
            ) from None
        now = _seconds(clock.now())
        if now >= claims["exp"]:
            raise InvalidTokenError("The access token expiry UTC time is earlier than the current UTC time.")
        if now < claims["nbf"]:
            raise InvalidTokenError("The access token is not valid yet.")
        return claims

    def jwks(self) -> dict[str, Any]:
        """The public signing key as a JSON Web Key Set."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "use": "sig",
            "kid": self._key_id,
            "n": to_base64url_uint(numbers.n).decode(),
            "e": to_base64url_uint(numbers.e).decode(),
            "issuer": self.issuer,
        }
        return {"keys": [key]}

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        pem = self._store.kept(_KIND, _KEY, _new_key).encode()
        # The store created this key and authenticates it: checking its primes again would cost 50 ms.
        return cast(rsa.RSAPrivateKey, load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True))

    @cached_property
    def _key_id(self) -> str:
        return key_id(self._key)


def key_id(key: rsa.RSAPrivateKey) -> str:
    """The name of a signing key in tokens: a digest of its public half, in base64url."""
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64url_encode(hashlib.sha256(public).digest()).decode()


def _new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return private_pem(key).decode()


def _pairwise(user: User, client_id: str) -> str:
    """A user's `sub`: another one for each client, as in Entra."""
    return hashlib.sha256(f"{user.object_id} {client_id}".encode()).hexdigest()[:43]


def _seconds(instant: datetime) -> int:
    return int(instant.timestamp())
