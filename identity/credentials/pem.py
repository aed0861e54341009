"""Base64 and PEM as Go's standard library reads them, and with it the loader in every control-plane pod.

Python's readers are more lenient in places, and stricter in others; tests compare with the loader itself.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Final

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"
_QUANTUM: Final = 4


@dataclass(frozen=True)
class Block:
    """What stands between a BEGIN and its END line; `repr` hides it. `is_locked`: its headers ask for a password."""

    label: str
    content: bytes = field(repr=False)
    is_locked: bool

    def text(self, label: str) -> bytes:
        """The block in PEM under this label."""
        return f"-----BEGIN {label}-----\n{base64.encodebytes(self.content).decode()}-----END {label}-----\n".encode()


def standard_base64(data: bytes) -> bytes:
    """Go's base64.StdEncoding: padded, line ends ignored. Raises binascii.Error."""
    digits = data.translate(None, b"\r\n")
    # Python's strict mode takes one padding character too many, and whole quanta of them behind the last full one.
    if len(digits) % _QUANTUM or digits.endswith(b"==="):
        raise binascii.Error("incorrect padding")
    return binascii.a2b_base64(digits, strict_mode=True)


def blocks(text: bytes) -> list[Block]:
    """Every PEM block that Go's pem.Decode finds; malformed text is skipped, as there."""
    parsed, position = [], 0
    while (end := text.find(_END, position)) >= 0:
        begin, position = text.rfind(_BEGIN, position, end), end + len(_END)
        if begin < 0 or text[begin - 1 : begin] not in (b"", b"\n"):
            continue
        block = _block(text[begin + len(_BEGIN) : end + 1], _line(text, position))
        if block is not None:
            parsed.append(block)
            position = text.find(b"\n", position) + 1 or len(text)
    return parsed


def _block(opened: bytes, closing: bytes) -> Block | None:
    """The block of what follows `-----BEGIN ` and the rest of its END line; None if they do not fit."""
    title = _line(opened, 0)
    if not title.endswith(_DASHES) or closing != title:
        return None
    headers, body = _headers(opened.partition(b"\n")[2])
    try:
        content = standard_base64(body.translate(None, b" \t"))
        label = title.removesuffix(_DASHES).decode("ascii")
    except ValueError:  # binascii.Error and UnicodeDecodeError are kinds of it
        return None
    return Block(label, content, is_locked=any(b"ENCRYPTED" in header for header in headers))


def _headers(body: bytes) -> tuple[list[bytes], bytes]:
    headers = []
    while b":" in (line := _line(body, 0)):
        headers.append(line)
        body = body.partition(b"\n")[2]
    return headers, body


def _line(text: bytes, start: int) -> bytes:
    """The line that begins at `start`, without its end and the blanks before that."""
    end = text.find(b"\n", start)
    line = text[start:] if end < 0 else text[start:end].removesuffix(b"\r")
    return line.rstrip(b" \t")
