"""Validates the stack's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from identity.settings import ConfigurationError, Problem, Settings
from identity.settings.problems import for_stack
from identity.settings.schema.problems import NAMESPACE, path_of, value_at
from identity.settings.schema.value_spec import PLACEHOLDER
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import settings_in_the_file_of
from ops.world.seen import Unread
from ops.world.stack_world import RefusedValue, SeenConfiguration

# The keys by which backend, Azure and the management cluster are reached.
_FOR_SIGN_IN: Final = frozenset({"backend", "tenantId", "subscriptionId", "managementCluster"})


def read_configuration(engine: Engine) -> SeenConfiguration | Unread:
    """The refused values of the configuration, or the enabled identities."""
    try:
        settings = settings_in_the_file_of(engine)
    except CommandError as error:
        return Unread.because(error)
    except ConfigurationError as error:
        return SeenConfiguration(refused=tuple(_refused(engine, error.problems)), identities={})
    return SeenConfiguration(refused=(), identities=_enabled(settings))


def _enabled(settings: Settings) -> dict[str, tuple[str, ...]]:
    return {
        cluster.name: tuple(row.field for row in cluster.enabled_rows)
        if cluster.has_credentials
        else tuple(row.field for row in cluster.federated_rows)
        for cluster in settings.hosted_clusters
    }


def _refused(engine: Engine, problems: tuple[Problem, ...]) -> Iterator[RefusedValue]:
    written = engine.written()
    for problem in problems:
        name = value_at(written, (*problem.place[:2], "name")) if problem.place[:1] == ("hostedClusters",) else None
        yield RefusedValue(
            cluster=name if isinstance(name, str) and name else None,
            path=f"{NAMESPACE}:{path_of(problem.place)}",
            found=problem.found,
            accepted=problem.accepted,
            fix=for_stack(problem.fix, engine.stack),
            prevents_sign_in=PLACEHOLDER in problem.found and not _FOR_SIGN_IN.isdisjoint(problem.place[:1]),
        )
