"""Files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, replacing an earlier one in a single step."""
    import tempfile  # it imports shutil and random, which a reader of such files does not need

    descriptor, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # made 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(draft).replace(file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
