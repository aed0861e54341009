"""The local ARM, Graph and Key Vault behind real sockets, and the client of the deployer."""

from __future__ import annotations

from tests.unit.ops.served_world import azure, cloud, deployer, world

__all__ = ["azure", "cloud", "deployer", "world"]
