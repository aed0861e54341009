"""A local Azure in memory."""

from __future__ import annotations

from tests.unit.localcloud.arm_world import world

__all__ = ["world"]
