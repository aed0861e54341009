"""The local ARM and Graph, for the client of the deployer."""

from tests.unit.azure_world import cloud
from tests.unit.localcloud.arm_world import world

__all__ = ["cloud", "world"]
