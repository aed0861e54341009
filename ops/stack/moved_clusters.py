"""Refuses to move a hosted cluster from one stack to another by their configurations alone.

The first stack would delete its applications, and the second could not write secrets whose names the deleted ones keep.
`idstack split` moves it without that. Decision record 0063.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from identity.settings.problems import NAMESPACE
from ops.stack.configuration import shared_stack_of
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.splitting import clusters_in

_FILE: Final = "Pulumi.{}.yaml"
_CLUSTERS: Final = f"{NAMESPACE}:hostedClusters"
_EMPTY: Final[Mapping[str, Any]] = {"config": {}}


def refuse_moves(engine: Engine) -> None:
    """Raise CommandError if the next `up` would take a cluster down that another stack is to have, or the reverse.

    The other stack is the one that shares this one's vault, or whose vault this one shares, with its file beside this
    stack's. The state, and not the outputs, says which stack has a cluster: `idstack split` moves the state.
    """
    stack, files = engine.stack.rpartition("/")[2], _configurations(engine.root)
    own = files.get(stack, _EMPTY)
    moves = {
        cluster: other
        for other, document in files.items()
        if shared_stack_of(document) == stack
        for cluster in sorted(_names(document) - _names(own))
    }
    if moves and (leaving := moves.keys() & clusters_in(engine.resources()).keys()):
        raise _refused(engine, {cluster: (stack, moves[cluster]) for cluster in leaving})
    shared = shared_stack_of(own)
    if shared is None or not (new := _names(own) - clusters_in(engine.resources()).keys()):
        return
    # A shared stack that is missing has the program's own message.
    if coming := new & clusters_in(replace(engine, stack=shared).resources_if_any()).keys():
        raise _refused(engine, dict.fromkeys(coming, (shared, stack)))


def _refused(engine: Engine, moves: Mapping[str, tuple[str, str]]) -> CommandError:
    lines = (
        f"  {cluster} is in the state of {source}, and in {_FILE.format(target)}: in one change {source} would delete "
        f"its applications and refuse its pods. Take it out of {_FILE.format(source)}, and move it first "
        f"(docs/stacks.md): `idstack split --stack {source} --cluster {cluster} --to {target}`. Or, if nobody uses it "
        f"any more, leave it out of both files until an `up` of {source} has deleted it"
        for cluster, (source, target) in sorted(moves.items())
    )
    return CommandError("\n".join([f"nothing was changed in {engine.stack}:", *lines]))


def _configurations(root: Path) -> dict[str, Mapping[str, Any]]:
    return dict(_read(root))


def _read(root: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    prefix, suffix = _FILE.split("{}")
    for file in sorted(root.glob(_FILE.format("*"))):
        try:
            document = yaml.safe_load(file.read_text(encoding="utf-8"))
        except yaml.YAMLError:
            continue  # the engine says so of this stack's; another one's stands in nobody's way
        is_whole = isinstance(document, Mapping) and isinstance(document.get("config"), Mapping)
        yield file.name.removeprefix(prefix).removesuffix(suffix), document if is_whole else _EMPTY


def _names(document: Mapping[str, Any]) -> set[str]:
    clusters = document["config"].get(_CLUSTERS)
    return {
        each["name"]
        for each in (clusters if isinstance(clusters, list) else ())
        if isinstance(each, Mapping) and isinstance(each.get("name"), str)
    }
