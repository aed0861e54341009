"""Index tags of a blob, as a Put Blob states them in `x-ms-tags`.

Source: REST reference of Blob Storage, Put Blob and Set Blob Tags (ten tags, lengths, characters).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from localcloud.azure.blob import errors

HEADER: Final = "x-ms-tags"
_MAXIMUM: Final = 10
_NAME: Final = re.compile(r"[A-Za-z0-9 +./:=_-]{1,128}")
_VALUE: Final = re.compile(r"[A-Za-z0-9 +./:=_-]{0,256}")


def stated(headers: Mapping[str, str]) -> dict[str, str]:
    """The tags of a request, {} without the header; raises 400 for an invalid tag."""
    if HEADER not in headers:
        return {}
    try:
        pairs = parse_qsl(headers[HEADER], keep_blank_values=True, strict_parsing=True, max_num_fields=_MAXIMUM)
    except ValueError:
        raise errors.header_invalid() from None
    tags = dict(pairs)
    allowed = all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in pairs)
    if len(tags) < len(pairs) or not allowed:
        raise errors.header_invalid()
    return tags
