"""The local ARM and Graph, for the client of the deployer."""

from localcloud.tests.arm_world import world
from tests.unit.azure_world import cloud

__all__ = ["cloud", "world"]
