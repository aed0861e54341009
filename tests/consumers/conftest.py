"""The programs that use the credentials, on the local stack: `make consumers CONSUMERS=<folder>` runs these tests."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep these tests out of every other run: most need programs that this project neither has nor fetches."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("consumers")
