"""Configurations of stacks as their files have them, from which tests make others."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from ops.rehearsal.configuration import StackCopy, copy_configuration, local_names

_ROOT: Final = Path(__file__).parents[4]
DOCUMENTS: Final = Path("/run/documents")
OWN: Final = "5f0c6b1e-2d7a-4c39-8e51-7a90d3b46c28"
SUBSCRIPTION: Final = f"/subscriptions/{OWN}"


@cache
def _written(name: str) -> dict[str, Any]:
    sample = _ROOT / f"examples/stacks/Pulumi.{name}.yaml"
    file = sample if sample.exists() else _ROOT / sample.name
    document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return document


def stack_file(name: str = "stage", **changes: Any) -> dict[str, Any]:
    """The project's own file of a stack, with other top-level keys; None takes one out."""
    document = deepcopy(_written(name))
    for key, value in changes.items():
        document["config"][f"idstack:{key}"] = deepcopy(value)
        if value is None:
            del document["config"][f"idstack:{key}"]
    return document


def cluster(stack: str = "stage", /, **changes: Any) -> dict[str, Any]:
    """The hosted cluster of such a file, changed."""
    found: dict[str, Any] = deepcopy(stack_file(stack)["config"]["idstack:hostedClusters"][0])
    return {**found, **changes}


def copy_of(document: dict[str, Any], stack: str = "dev", *others: str, seed: int = 1) -> StackCopy:
    """The copy of one stack's file in a rehearsal of it and `others`."""
    return copy_configuration(stack, document, local_names((stack, *others)), DOCUMENTS, seed)
