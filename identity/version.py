"""The version of this product, of which `pyproject.toml` is the only source.

`idstack --version` prints it, and the provider plugin has it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).parents[1] / "pyproject.toml"
VERSION: Final = str(tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["version"])
