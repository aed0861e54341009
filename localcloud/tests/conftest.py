"""A local Azure in memory, and one with all of its services."""

from __future__ import annotations

from localcloud.tests.arm_world import vault, world
from localcloud.tests.coverage.cloud import cloud

__all__ = ["cloud", "vault", "world"]
