"""The documents that the fleet's files and the rights consist of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from identity.yaml_text import dump


def yaml_text(documents: Iterable[Mapping[str, Any]]) -> str:
    """The documents one after the other, keys in their order, a value on one line."""
    return dump(*documents)
