"""Validates the stack's configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

from identity.catalogue import CONTROL_PLANE
from identity.settings import ConfigurationError, Problem, Settings
from identity.settings.problems import for_stack
from identity.settings.schema.problems import NAMESPACE, path_of
from identity.settings.stack_file import written_for
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import load, texts_of
from ops.world.seen import Unread
from ops.world.stack_world import RefusedValue, SeenConfiguration


def read_configuration(engine: Engine) -> SeenConfiguration | Unread:
    """The refused values of the configuration, or the enabled identities."""
    try:
        texts = texts_of(engine)
        settings = load(engine.stack, texts, written_for(engine.stack, engine.root))
    except CommandError as error:
        return Unread.because(error)
    except ConfigurationError as error:
        names = _names(texts)
        return SeenConfiguration(refused=tuple(_refused(engine.stack, error.problems, names)), identities={})
    return SeenConfiguration(refused=(), identities=_enabled(settings))


def _enabled(settings: Settings) -> dict[str, tuple[str, ...]]:
    return {
        cluster.name: tuple(row.field for row in CONTROL_PLANE if cluster.identity(row).enabled)
        if cluster.has_credentials
        else tuple(row.field for row in cluster.federated_rows)
        for cluster in settings.hosted_clusters
    }


def _refused(stack: str, problems: tuple[Problem, ...], names: list[str]) -> Iterator[RefusedValue]:
    for problem in problems:
        match problem.place:
            case ("hostedClusters", int(number), *_) if number < len(names):
                cluster: str | None = names[number] or None
            case _:
                cluster = None
        yield RefusedValue(
            cluster=cluster,
            path=f"{NAMESPACE}:{path_of(problem.place)}",
            found=problem.found,
            accepted=problem.accepted,
            fix=for_stack(problem.fix, stack),
        )


def _names(texts: Mapping[str, str]) -> list[str]:
    """The names of the hosted clusters, in order; empty for one without."""
    with suppress(ValueError, AttributeError, TypeError):
        return [str(cluster.get("name") or "") for cluster in json.loads(texts.get("hostedClusters", "[]"))]
    return []
