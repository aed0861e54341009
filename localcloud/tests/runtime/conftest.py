"""A local Azure in memory."""

from __future__ import annotations

from localcloud.tests.arm_world import world

__all__ = ["world"]
