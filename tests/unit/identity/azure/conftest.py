"""A local Azure behind a socket, and its deployer."""

from __future__ import annotations

from tests.unit.azure_world import cloud, deployer
from tests.unit.localcloud.arm_world import world

__all__ = ["cloud", "deployer", "world"]
