"""Which requests a held fault is about: service, operation, caller and how often."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final
from urllib.parse import parse_qs

import jwt
from pydantic import AfterValidator, ConfigDict, Field
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

STRICT: Final = ConfigDict(extra="forbid")

OPERATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "entra": {
        "token": r"/oauth2/v2\.0/token$",
        "device code": r"/oauth2/v2\.0/devicecode$",
        "metadata": r"/\.well-known/openid-configuration$",
        "signing keys": r"/discovery/v2\.0/keys$",
    },
    "graph": {
        "application": r"/applications(/[^/]+|\([^)]*\))?$",
        "service principal": r"/servicePrincipals(/[^/]+|\([^)]*\))?$",
        "federated credential": r"/federatedIdentityCredentials(/[^/]+)?$",
        "deleted item": r"/directory/deletedItems/",
    },
    "arm": {
        "vault": r"/vaults(/[^/]+)?$",
        "secret": r"/vaults/[^/]+/secrets(/[^/]+)?$",
        "role assignment": r"/roleAssignments(/[^/]+)?$",
        "role definition": r"/roleDefinitions(/[^/]+)?$",
        "managed identity": r"/userAssignedIdentities(/[^/]+)?$",
        "federated credential": r"/federatedIdentityCredentials(/[^/]+)?$",
        "managed cluster": r"/managedClusters(/[^/]+)?$",
        "network": r"/Microsoft\.Network/",
        "storage account": r"/storageAccounts(/[^/]+)?$",
        "resource group": r"/resourceGroups(/[^/]+)?$",
    },
    "keyvault": {
        "secret": r"^/secrets(/|$)",
        "deleted secret": r"^/deletedsecrets(/|$)",
        "key": r"^/keys(/|$)",
        "certificate": r"^/certificates(/|$)",
    },
    "blob": {"blob": "^/"},
    "imds": {"token": "/oauth2/token$"},
    "aks-webhooks": {"review": "^/"},
}
"""By service, what its requests are about: the expression that is searched in their paths."""
SERVICES: Final = tuple(OPERATIONS)


def _compiles(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text


def _is_known(service: str) -> str:
    if service not in SERVICES:
        raise ValueError(f"{service!r} is not a service; accepted: {', '.join(SERVICES)}")
    return service


Service = Annotated[str, AfterValidator(_is_known)]
"""One of `SERVICES`."""
Expression = Annotated[str, AfterValidator(_compiles)]
"""A regular expression."""


@dataclass(frozen=True)
class Match:
    """The requests that a fault is about, and to which of them it applies.

    Attributes:
        service: whose requests.
        methods: HTTP methods, all of them if empty.
        path: regular expression, searched in the path without regard to case.
        body: regular expression that is searched in the body as sent; "" matches without reading it.
        operation: one of the service's `OPERATIONS`, alone or after a method: `secret`, `PUT secret`.
        identity: client id or object id of the caller: of a bearer token, or of the client that signs in.
        probability: share of the matching requests that it applies to, drawn with `seed`.
        seed: of `probability`.
        skip: how many matching requests it lets pass first.
        count: the maximum of requests that it fails.
        seconds: how long it lasts after it was held.
    """

    __pydantic_config__: ClassVar = STRICT

    service: Service
    methods: tuple[str, ...] = ()
    path: Expression = ""
    body: Expression = ""
    operation: str = field(default="", kw_only=True)
    identity: str = field(default="", kw_only=True)
    probability: Annotated[float, Field(ge=0, le=1)] = field(default=1.0, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    skip: Annotated[int, Field(ge=0)] = field(default=0, kw_only=True)
    count: Annotated[int, Field(ge=1)] | None = field(default=None, kw_only=True)
    seconds: Annotated[float, Field(gt=0)] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        known = OPERATIONS.get(self.service, {})
        if self.operation and self._operation[1] not in known:
            raise ValueError(f"{self.operation!r} is not an operation of {self.service}; accepted: {', '.join(known)}")

    async def is_about(self, service: str, scope: Scope, receive: Receive) -> tuple[bool, Receive]:
        """Whether a request matches, and how to receive its body again. The fault may spare it all the same."""
        method, noun = self._operation
        path: str = scope["path"]
        if (
            service != self.service
            or (self.methods and scope["method"] not in self.methods)
            or (method and scope["method"] != method)
            or re.search(self.path, path, re.IGNORECASE) is None
            or (noun and re.search(OPERATIONS[service][noun], path, re.IGNORECASE) is None)
        ):
            return False, receive
        body = b""
        if self.body or (self.identity and _is_sign_in(service)):
            body, receive = await _read(receive)
        text = body.decode(errors="replace")
        return re.search(self.body, text) is not None and self._is_of_identity(scope, text), receive

    @property
    def _operation(self) -> tuple[str, str]:
        """The method and its object; either may be empty."""
        first, _, rest = self.operation.partition(" ")
        return (first, rest) if first.isupper() else ("", self.operation)

    def _is_of_identity(self, scope: Scope, body: str) -> bool:
        return not self.identity or self.identity.lower() in _callers(scope, body)


def _is_sign_in(service: str) -> bool:
    return service == "entra"


def _callers(scope: Scope, body: str) -> set[str]:
    """Client id and object id of a request, in lower case and not verified."""
    form = {**parse_qs(scope.get("query_string", b"").decode(errors="replace")), **parse_qs(body)}
    callers = {*form.get("client_id", ()), *form.get("object_id", ())}
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.InvalidTokenError:
            claims = {}
        callers |= {str(claims.get("appid")), str(claims.get("oid"))}
    return {identity.lower() for identity in callers}


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """The body, and how to receive it again."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return body, again
