"""The local cloud's record, as the local cloud writes it."""

from __future__ import annotations

from pathlib import Path

from identity.clouds import LocalEnvironment
from localcloud.testing.running import clouds


def write_record(file: Path, environment: LocalEnvironment) -> Path:
    """Write `environment.json`; returns the file."""
    file.write_text(clouds.LocalEnvironment(**vars(environment)).to_json(), encoding="utf-8")
    return file
