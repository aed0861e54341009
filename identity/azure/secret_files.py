"""Reads files with secrets: certificates, passwords, tokens."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from identity.azure.errors import LoginRefusedError
from identity.credentials.byte_order_mark import foreign_encoding

# The commands that convert a file, by its encoding.
_COMMANDS: Final = {
    "UTF-8 with a byte-order mark": "sed '1s/^\\xEF\\xBB\\xBF//'",
    "UTF-16": "iconv -f UTF-16 -t UTF-8",
}


def content(path: Path) -> bytes:
    """A file's content; raises LoginRefusedError, also for a text in a Windows encoding."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LoginRefusedError(
            f"{path} cannot be read ({error.strerror}); name a file that this user may read"
        ) from None
    if encoding := foreign_encoding(data):
        raise LoginRefusedError(
            f"{path} is in {encoding}; accepted is UTF-8 without a byte-order mark: `{_COMMANDS[encoding]} "
            f"{shlex.quote(str(path))}` prints it so"
        )
    return data


def text(path: Path) -> str:
    """A file's text without surrounding white space; raises LoginRefusedError, also if it is empty."""
    try:
        content_text = content(path).decode().strip()
    except UnicodeDecodeError:
        raise LoginRefusedError(f"{path} is not UTF-8 text; put the value itself there") from None
    if not content_text:
        raise LoginRefusedError(f"{path} is empty; put the value itself there")
    return content_text
