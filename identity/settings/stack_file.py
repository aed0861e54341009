"""The configuration in a stack's own file, as YAML reads it.

Pulumi passes scalars as text: `true`, `2024` and "true" in quotes arrive alike. The file distinguishes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import yaml

from identity import yaml_text
from identity.settings.schema.problems import NAMESPACE


def written(text: str) -> dict[str, Any]:
    """The project's values in the text of a stack's file, without the keys' namespace; raises yaml.YAMLError."""
    return own_values(yaml_text.load(text) or {})


def require_unique_keys(text: str) -> None:
    """Raise ConstructorError for a key that occurs twice in a mapping, as yaml.v3 does: PyYAML takes the last one."""
    waiting: list[yaml.Node] = list(yaml.compose_all(text, yaml.CSafeLoader))
    seen = set[int]()
    while waiting:
        if id(node := waiting.pop()) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        parts = node.value if isinstance(node, yaml.MappingNode) else [(None, item) for item in node.value]
        waiting += [item for _, item in parts]
        names: set[str] = set()
        for key in (key for key, _ in parts if isinstance(key, yaml.ScalarNode)):
            if key.value in names:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value} occurs twice", key.start_mark)
            names.add(key.value)


def own_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """The project's values in a stack's file, without the keys' namespace, but for a misspelt one.

    Of another namespace nobody knows whose it is: a plugin's, or another program's.
    """
    config = document.get("config") or {}
    own = {key.removeprefix(f"{NAMESPACE}:"): value for key, value in config.items()}
    return {key: value for key, value in own.items() if ":" not in key or _is_misspelt(key.partition(":")[0])}


def _is_misspelt(namespace: str) -> bool:
    return namespace[:1] == NAMESPACE[0] and SequenceMatcher(None, namespace, NAMESPACE).ratio() > 0.8


def written_for(stack: str, root: Path) -> dict[str, Any] | None:
    """The values in the stack's file of a project; None if it cannot be read."""
    try:
        return written((root / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, AttributeError, yaml.YAMLError):
        return None
