"""Faults that a test switches on and off while the local cloud runs: a file that every request reads.

The file is one JSON object of `HeldFaults`' three members, each of which may be missing; without it nothing is held.
`localcloud faults` writes it. It is meant for tests of what lasts (Entra ID away for a day), so it is no part of
`Faults`, which describes how Azure always is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, TypeAdapter, ValidationError

from localcloud.azure.shared.faults import Faults
from localcloud.core.validation import problems

SERVICES: Final = ("entra", "graph", "arm", "keyvault", "blob", "imds", "aks-webhooks")


def _compiles(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    return text


def _is_known(service: str) -> str:
    if service not in SERVICES:
        raise ValueError(f"{service!r} is no service; {', '.join(SERVICES)} are")
    return service


_Service = Annotated[str, AfterValidator(_is_known)]
_Expression = Annotated[str, AfterValidator(_compiles)]
_STRICT: Final = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class HeldAnswer:
    """What every matching request is answered instead of the service's own answer.

    Attributes:
        service: whose requests.
        methods: HTTP methods, all of them if empty.
        path: regular expression that is searched in the path, without regard to case.
        body: regular expression that is searched in the body as sent; "" matches without reading it.
        status: HTTP status; None drops the connection without an answer.
        code: the service's error code.
        message: its text.
        after: whether the request takes effect all the same, so that only its answer is lost.
    """

    __pydantic_config__: ClassVar = _STRICT

    service: _Service
    methods: tuple[str, ...] = ()
    path: _Expression = ""
    body: _Expression = ""
    status: Annotated[int, Field(ge=400, le=599)] | None = 503
    code: str = "ServiceUnavailable"
    message: str = "Held by a test."
    after: bool = False

    def is_about(self, service: str, method: str, path: str) -> bool:
        """Whether a request of this method and path may match; its body has the last word."""
        return (
            service == self.service
            and (not self.methods or method in self.methods)
            and re.search(self.path, path, re.IGNORECASE) is not None
        )


@dataclass(frozen=True)
class HeldReplication:
    """Entra ID accepts no certificate that was registered after `since`; `client_id` None means any application's.

    Registrations that were removed are refused at their usual time, so that nothing hides a missing certificate.
    """

    __pydantic_config__: ClassVar = _STRICT

    since: AwareDatetime
    client_id: Annotated[str, AfterValidator(str.lower)] | None = None


@dataclass(frozen=True)
class HeldFaults:
    """Everything that is held now.

    Attributes:
        answers: the first that matches a request answers it.
        replication: certificates that Entra ID does not accept.
        date_shift: as `Faults.date_shift`, which it overrides by service.
    """

    __pydantic_config__: ClassVar = _STRICT

    answers: tuple[HeldAnswer, ...] = ()
    replication: tuple[HeldReplication, ...] = ()
    date_shift: Mapping[_Service, float] = field(default_factory=dict)

    def accepts(self, client_id: str, registered_at: datetime) -> bool:
        """Whether Entra ID accepts a certificate that was registered then on the application of `client_id`."""
        return not any(
            registered_at > each.since and each.client_id in (None, client_id.lower()) for each in self.replication
        )

    def date_shift_of(self, service: str, faults: Faults) -> float:
        """Seconds that the `Date` of the service's answers is ahead."""
        return {**faults.date_shift, **self.date_shift}.get(service, 0.0)

    def to_json(self) -> str:
        """The file's content."""
        document = {
            "answers": [vars(each) for each in self.answers],
            "replication": [{**vars(each), "since": each.since.isoformat()} for each in self.replication],
            "date_shift": dict(self.date_shift),
        }
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> HeldFaults:
        """The inverse of `to_json`; raises ValueError that names each place in what is not such a document."""
        try:
            return _DOCUMENT.validate_json(text)
        except ValidationError as error:
            raise ValueError("\n".join(f"held faults: {problem}" for problem in problems(error))) from None


_DOCUMENT: Final = TypeAdapter(HeldFaults)


class FaultHolder:
    """Reads what is held now. Without a file, nothing ever is."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def now(self) -> HeldFaults:
        """What is held at this moment; raises ValueError if the file is none of ours."""
        if self._file is None:
            return _NOTHING
        try:
            return HeldFaults.from_json(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return _NOTHING


_NOTHING: Final = HeldFaults()
