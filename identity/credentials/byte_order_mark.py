"""Texts that an editor or a shell of Windows has encoded: with a byte-order mark, or in UTF-16."""

from __future__ import annotations

import codecs


def foreign_encoding(data: bytes) -> str | None:
    """The name of an encoding that readers of UTF-8 refuse or take for a part of the value; else None."""
    if data.startswith(codecs.BOM_UTF8):
        return "UTF-8 with a byte-order mark"
    # A text that begins with an ASCII character has a zero byte before or behind it.
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:2]:
        return "UTF-16"
    return None
