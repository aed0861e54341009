"""Names the owners of resources that stopped an `up` because they exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from identity.azure.errors import AccessError
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.existing import ObstacleError


@contextmanager
def naming_owners(engine: Engine) -> Iterator[None]:
    """A run whose error says whether each conflicting resource may be adopted, and whose it is if not."""
    try:
        yield
    except ObstacleError as stopped:
        # Azure's client takes a tenth of a second to import, which a run without a conflict does not need.
        from ops.world.adoption_guard import adoption_guard

        try:
            with adoption_guard(engine) as guard:
                objections = {
                    obstacle: guard.objection(obstacle.type, obstacle.id, obstacle.principal)
                    for obstacle in stopped.obstacles
                }
        except (AccessError, CommandError) as failed:
            raise CommandError(
                f"{stopped}\n\nTheir owners could not be found: {failed}. `.venv/bin/idstack import` tries again"
            ) from None
        raise stopped.judged({obstacle: why for obstacle, why in objections.items() if why is not None}) from None
