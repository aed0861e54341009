"""The local ARM and Graph, for the client of the deployer."""

from tests.unit.localcloud.arm_world import world
from tests.unit.ops.azure_world import cloud

__all__ = ["cloud", "world"]
