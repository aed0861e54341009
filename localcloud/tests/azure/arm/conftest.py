from localcloud.tests.arm_world import world

__all__ = ["world"]
