"""Seeds of the local cloud for tests."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.architecture.source import ROOT


def administrators_seed(folder: Path) -> Path:
    """The stack's seed with a deployer who assigns any role to anybody, as somebody beside the stack does."""
    seed = yaml.safe_load((ROOT / "cloud/emulated/seed.yaml").read_text(encoding="utf-8"))
    seed["deployerRoles"].append("User Access Administrator")
    file = folder / "administrator.yaml"
    file.write_text(yaml.safe_dump(seed), encoding="utf-8")
    return file
