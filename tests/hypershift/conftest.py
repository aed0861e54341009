"""HyperShift's own programs on the local stack: `make hypershift HYPERSHIFT=<folder>` runs these tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.rooted import is_dynamic

PROGRAMS: Final = ("hypershift", "hypershift-operator", "control-plane-operator")


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The folder with HyperShift's programs."""
    named = os.environ.get("HYPERSHIFT")
    if not named:
        pytest.fail(f"HYPERSHIFT names no folder with {', '.join(PROGRAMS)} (docs/explanation/testing.md)")
    missing = [program for program in PROGRAMS if not os.access(Path(named, program), os.X_OK)]
    if missing:
        pytest.fail(f"HYPERSHIFT={named} has no {', '.join(missing)} (docs/explanation/testing.md)")
    dynamic = [program for program in PROGRAMS if is_dynamic(Path(named, program))]
    if dynamic:
        pytest.fail(
            f"{', '.join(dynamic)} in HYPERSHIFT={named} cannot start without libc, which no container here has: "
            "build with CGO_ENABLED=0 (docs/explanation/testing.md)"
        )
    return Path(named).resolve()
