"""Logs as JSON lines on standard error."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """One JSON object a line; a record's `fields` (from `extra`) are laid beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON text."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up() -> None:
    """Send this package's records from INFO on, and warnings of every library, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("identity.credentials").setLevel(logging.INFO)
    # azure-identity warns of each failed sign-in, which the probe reports itself, once.
    logging.getLogger("azure.identity").setLevel(logging.ERROR)
