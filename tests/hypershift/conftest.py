"""HyperShift's own programs on the local stack: `make hypershift HYPERSHIFT=<folder>` runs these tests."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

import pytest

_PT_INTERP: Final = 3
PROGRAMS: Final = ("hypershift", "hypershift-operator", "control-plane-operator")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep these tests out of every other run: they need programs that this project neither has nor fetches."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("hypershift")


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


def is_dynamic(program: Path) -> bool:
    """Whether a 64-bit ELF program needs an interpreter (`ld-linux`), by its program headers; see elf(5)."""
    image = program.read_bytes()
    (table,) = struct.unpack_from("<Q", image, 32)
    size, number = struct.unpack_from("<HH", image, 54)
    return any(struct.unpack_from("<I", image, table + size * entry) == (_PT_INTERP,) for entry in range(number))
