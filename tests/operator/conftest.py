"""The Pulumi Kubernetes Operator on the local stack: `make operator OPERATOR=<folder>` runs these tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

# The operator's two programs and its own objects, as its release has them in `deploy/quickstart`, and the webhook of
# Azure Workload Identity with its objects, as its release has them in `deploy`.
FILES: Final = ("manager", "agent", "install.yaml", "webhook", "azure-wi-webhook.yaml")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep these tests out of every other run: they need programs that this project neither has nor fetches."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("operator")


@pytest.fixture(scope="session")
def release() -> Path:
    """The folder with the operator's programs and objects."""
    named = os.environ.get("OPERATOR")
    if not named:
        pytest.skip(f"OPERATOR names no folder with {', '.join(FILES)} (docs/explanation/testing.md)")
    if missing := [file for file in FILES if not Path(named, file).is_file()]:
        pytest.skip(f"OPERATOR={named} has no {', '.join(missing)} (docs/explanation/testing.md)")
    return Path(named).resolve()
