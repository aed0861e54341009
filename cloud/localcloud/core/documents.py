"""Dataclasses as documents of the store: members in camel case, dates as text, bytes as base64."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, TypeAdapter
from pydantic.alias_generators import to_camel

from localcloud.core.store import Document

_Entry = TypeVar("_Entry")

STORED: Final = ConfigDict(alias_generator=to_camel)
"""The `__pydantic_config__` of each dataclass; those derived from it have it, too."""
StoredBytes = Annotated[
    bytes, BeforeValidator(base64.b64decode), PlainSerializer(lambda raw: base64.b64encode(raw).decode())
]
"""The type of a member with bytes."""
_adapter: Final[Callable[[type], TypeAdapter[Any]]] = cache(TypeAdapter)


def to_document(entry: object) -> Document:
    """The stored form of a dataclass."""
    document: Document = _adapter(type(entry)).dump_python(entry, mode="json", by_alias=True)
    return document


def from_document(cls: type[_Entry], document: Document) -> _Entry:
    """The inverse of `to_document`; a member that the document lacks has its default."""
    entry: _Entry = _adapter(cls).validate_python(document)
    return entry
