"""The version of this product, of which `pyproject.toml` is the only source."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).parents[1] / "pyproject.toml"


def read_version() -> str:
    """What `idstack --version` prints, and the version of the provider plugin."""
    return str(tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["version"])
