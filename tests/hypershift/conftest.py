"""HyperShift's own programs on the local stack: `make hypershift HYPERSHIFT=<folder>` runs these tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.rooted import lacking

PROGRAMS: Final = ("hypershift", "hypershift-operator", "control-plane-operator")


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The folder with HyperShift's programs."""
    if reason := lacking("HYPERSHIFT", programs=PROGRAMS):
        pytest.fail(reason)
    return Path(os.environ["HYPERSHIFT"]).resolve()
