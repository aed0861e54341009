from tests.unit.localcloud.arm_world import world

__all__ = ["world"]
