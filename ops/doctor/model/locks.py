"""How long a lock has been held."""

from __future__ import annotations

from ops.world.stack_world import SeenLock, StackWorld


def age(world: StackWorld, lock: SeenLock) -> str:
    """In the largest unit of which there are two, such as `47 minutes`."""
    seconds = max(int((world.now - lock.since).total_seconds()), 0)
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} seconds"
