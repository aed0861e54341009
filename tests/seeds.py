"""Seeds of the local cloud for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.architecture.source import ROOT


def extended_seed(folder: Path, **more: Sequence[Any]) -> Path:
    """The stack's seed with more in lists of it, as somebody beside the stack makes it."""
    seed = yaml.safe_load((ROOT / "cloud/emulated/seed.yaml").read_text(encoding="utf-8"))
    file = folder / "seed.yaml"
    file.write_text(yaml.safe_dump(seed | {name: [*seed[name], *added] for name, added in more.items()}))
    return file
