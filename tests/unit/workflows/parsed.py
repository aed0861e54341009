"""The GitHub workflows as documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

GITHUB = Path(__file__).parents[3] / ".github"


def parsed(file: Path) -> Mapping[Any, Any]:
    document: Mapping[Any, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return document


def jobs_of(file: Path | str) -> Mapping[str, Mapping[str, Any]]:
    """The jobs of a workflow, by its file or the name of that."""
    jobs: Mapping[str, Mapping[str, Any]] = parsed(GITHUB / "workflows" / file)["jobs"]
    return jobs
