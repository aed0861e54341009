"""The world of ARM, and a deployer who signs in to it."""

from __future__ import annotations

from localcloud.testing.arm import world
from tests.unit.azure_world import cloud, deployer

__all__ = ["cloud", "deployer", "world"]
