"""Faults that a test switches on and off while the local cloud runs: a file that every request reads.

The file is one object of `HeldFaults`' members, JSON or YAML, each of which may be missing; without it nothing is held.
`localcloud faults` writes it. It is for tests of lasting faults (Entra ID away for a day), so it is not part of
`Faults`, which describes how Azure always is.
"""

from __future__ import annotations

import errno
import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import parse_qs

import jwt
import yaml
from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from localcloud.core import clock, yaml_text
from localcloud.core.clouds import problems

# Which requests a held fault is about: service, operation, caller and how often.

STRICT: Final = ConfigDict(extra="forbid")

OPERATIONS: Final[Mapping[str, Mapping[str, str]]] = yaml_text.load(
    Path(__file__).with_name("operations.yaml").read_bytes()
)
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
        if self.body or (self.identity and service == "entra"):
            body, receive = await _read(receive)
        text = body.decode(errors="replace")
        is_of_identity = not self.identity or self.identity.lower() in _callers(scope, text)
        return re.search(self.body, text) is not None and is_of_identity, receive

    @property
    def _operation(self) -> tuple[str, str]:
        """The method and its object; either may be empty."""
        first, _, rest = self.operation.partition(" ")
        return (first, rest) if first.isupper() else ("", self.operation)


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


class Disk(StrEnum):
    """The fault of the store's disk."""

    FULL = "full"
    READ_ONLY = "read-only"

    @property
    def number(self) -> int:
        """The error of every write (errno(3))."""
        return {Disk.FULL: errno.ENOSPC, Disk.READ_ONLY: errno.EROFS}[self]


class Lock(StrEnum):
    """The kinds of management locks."""

    CAN_NOT_DELETE = "CanNotDelete"
    READ_ONLY = "ReadOnly"


@dataclass(frozen=True)
class HeldAnswer(Match):
    """An answer that replaces the service's own.

    Attributes:
        status: HTTP status; None drops the connection without an answer.
        code: the service's error code.
        message: its text.
        after: whether the request takes effect all the same, so that only its answer is lost.
        retry_after: seconds in the answer's Retry-After (RFC 9110 10.2.3); None: without one.
    """

    status: Annotated[int, Field(ge=400, le=599)] | None = 503
    code: str = "ServiceUnavailable"
    message: str = "Held by a test."
    after: bool = False
    retry_after: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True)
class HeldDelivery(Match):
    """How the service's own answer, or a held one, reaches the client. The request has taken effect.

    Attributes:
        latency: seconds before the first byte.
        bytes_per_second: speed of the body; None: no limit.
        cut: share of the body after which the connection is dropped; None: never.
    """

    latency: Annotated[float, Field(ge=0)] = 0.0
    bytes_per_second: Annotated[float, Field(gt=0)] | None = None
    cut: Annotated[float, Field(ge=0, lt=1)] | None = None


@dataclass(frozen=True)
class HeldLag(Match):
    """A read of Graph is answered by a replica that has seen no change of certificates after `since`."""

    since: AwareDatetime = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.service != "graph":
            raise ValueError(f"reads of graph lag, not those of {self.service}")


@dataclass(frozen=True)
class HeldReplication:
    """Entra ID accepts no certificate that was registered after `since`; `client_id` None means any application's.

    Registrations that were removed are refused at their usual time, so that a missing certificate is not hidden.
    """

    __pydantic_config__: ClassVar = STRICT

    since: AwareDatetime
    client_id: Annotated[str, AfterValidator(str.lower)] | None = None


@dataclass(frozen=True)
class HeldFaults:
    """All held faults.

    Attributes:
        answers: the first that applies to a request answers it.
        deliveries: the first that applies to a request delivers its answer.
        lags: reads of Graph to which one applies are answered by a late replica; `Faults.graph_delays` are the rest.
        replication: certificates that Entra ID does not accept.
        replica_delays: as `Faults.replica_delays`, which it overrides unless it is empty.
        token_lifetime: as `Faults.token_lifetime`, which it overrides.
        date_shift: seconds that the `Date` of a service's answers is ahead; negative is behind.
        expired_tls: services whose server certificate has expired, for connections that begin now.
        read_only_vaults: names of vaults in which nothing can be changed, as during Azure's failover.
        unregistered_providers: namespaces of ARM that the subscription is not registered to use.
        locks: management locks by the id of the resource, group or subscription that has one.
        certificate_days: the longest lifetime of a certificate by the tenant's app management policy; None: no limit.
        disk: what is wrong with the disk of the local cloud's own store.
    """

    __pydantic_config__: ClassVar = STRICT

    answers: tuple[HeldAnswer, ...] = ()
    replication: tuple[HeldReplication, ...] = ()
    date_shift: Mapping[Service, float] = field(default_factory=dict)
    deliveries: tuple[HeldDelivery, ...] = ()
    lags: tuple[HeldLag, ...] = ()
    replica_delays: tuple[Annotated[float, Field(ge=0)], ...] = ()
    token_lifetime: tuple[Annotated[int, Field(ge=1)], int] | None = None
    expired_tls: tuple[Service, ...] = ()
    read_only_vaults: tuple[Annotated[str, AfterValidator(str.lower)], ...] = ()
    unregistered_providers: tuple[Annotated[str, AfterValidator(str.lower)], ...] = ()
    locks: Mapping[Annotated[str, AfterValidator(str.lower)], Lock] = field(default_factory=dict)
    certificate_days: Annotated[int, Field(ge=0)] | None = None
    disk: Disk | None = None

    def accepts(self, client_id: str, registered_at: datetime) -> bool:
        """Whether Entra ID accepts a certificate that was registered then on the application of `client_id`."""
        return not any(
            registered_at > held.since and held.client_id in (None, client_id.lower()) for held in self.replication
        )

    def is_read_only(self, vault: str) -> bool:
        """Whether nothing can be changed in the vault of this name."""
        return vault.lower() in self.read_only_vaults

    def to_json(self) -> str:
        """The file's content: the members that are not the default."""
        return _DOCUMENT.dump_json(self, exclude_defaults=True).decode()

    @classmethod
    def parse(cls, text: str) -> HeldFaults:
        """The faults of a JSON or YAML text; raises a ValueError that names each wrong place."""
        try:
            document = _document(text)
            return _DOCUMENT.validate_python({} if document is None else document)
        except yaml.YAMLError as error:
            raise ValueError(f"held faults: {error}") from None
        except ValidationError as error:
            raise ValueError("\n".join(f"held faults: {problem}" for problem in problems(error))) from None


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return yaml_text.load(text)


_DOCUMENT: Final = TypeAdapter(HeldFaults)
_NOTHING: Final = HeldFaults()


@dataclass
class _Uses:
    """The uses of a fault with a probability, a count or a time since it is held."""

    chance: random.Random
    matched: int = 0
    applied: int = 0


class FaultHolder:
    """Reads the held faults, and counts to which requests they apply. Without a file there are none."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._read: tuple[str, int, int] | None = None
        self._held = _NOTHING
        self._uses: dict[Match, _Uses] = {}

    def now(self) -> HeldFaults:
        """The faults that are held now; raises ValueError for an invalid file."""
        if self._file is None:
            return _NOTHING
        try:
            status, text = self._file.stat(), self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._read, self._held = None, _NOTHING
            return _NOTHING
        if self._read != (read := (text, status.st_ino, status.st_mtime_ns)):
            self._held, self._uses = HeldFaults.parse(text), {}
            self._read = read
        return self._held

    def applies(self, fault: Match) -> bool:
        """Whether a held fault applies to the request that just matched it; counts both."""
        uses = self._uses.setdefault(fault, _Uses(random.Random(fault.seed)))
        uses.matched += 1
        applies = (
            uses.matched > fault.skip
            and (fault.seconds is None or clock.now() - self._since() < timedelta(seconds=fault.seconds))
            and (fault.count is None or uses.applied < fault.count)
            and (fault.probability == 1 or uses.chance.random() < fault.probability)
        )
        uses.applied += applies
        return applies

    def disk_error(self) -> int | None:
        """The error (errno(3)) of every write to the store; None if it can be written."""
        disk = self.now().disk
        return None if disk is None else disk.number

    def _since(self) -> datetime:
        assert self._read is not None, "a fault that is held was read"
        return datetime.fromtimestamp(self._read[2] / 1e9, clock.now().tzinfo)
