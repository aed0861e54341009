"""The local Azure, with its vaults, behind real sockets."""

from __future__ import annotations

from tests.unit.ops.served_world import azure, cloud, deployer, world

__all__ = ["azure", "cloud", "deployer", "world"]
