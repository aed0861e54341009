"""A part of a blob ("Specifying the range header for Blob service operations", Get Blob)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from starlette.datastructures import Headers

from localcloud.azure.blob import errors

# The first wins if a request has both.
HEADERS: Final = ("x-ms-range", "range")
_FORM: Final = re.compile(r"bytes=(\d+)-(\d*)", re.ASCII)


@dataclass(frozen=True)
class BlobRange:
    """The first byte, and the last one, which a blob has."""

    first: int
    last: int

    @classmethod
    def of(cls, headers: Headers, size: int) -> Self | None:
        """The requested range of a blob; None for all of it. Raises 416, and 501 for other forms."""
        name = next((name for name in HEADERS if name in headers), None)
        if name is None:
            return None
        asked = _FORM.fullmatch(headers[name].strip())
        if asked is None or (asked[2] and int(asked[2]) < int(asked[1])):
            raise errors.not_emulated(f"the header {name} with {headers[name]}")
        if int(asked[1]) >= size:
            raise errors.invalid_range()
        return cls(int(asked[1]), min(int(asked[2] or size), size - 1))

    def cut(self, content: bytes) -> bytes:
        """The part of the content."""
        return content[self.first : self.last + 1]
