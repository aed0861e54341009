"""Configurations in YAML files, which is what a stack file is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from identity.settings.stack_file import require_unique_keys

# Takes a key out of a configuration.
ABSENT: Final = object()


def read(file: Path, words: Mapping[str, object]) -> Any:
    """What the file has, in which no key occurs twice.

    In its texts `<VNET>` is that word's value, and `<x*3>` is xxx; `<ABSENT>` alone is `ABSENT`.
    """
    text = file.read_text(encoding="utf-8")
    require_unique_keys(text)
    return _filled_in(yaml.load(text, yaml.CSafeLoader), words)


def _filled_in(value: Any, words: Mapping[str, object]) -> Any:
    match value:
        case dict():
            return {_filled_in(key, words): _filled_in(part, words) for key, part in value.items()}
        case list():
            return [_filled_in(part, words) for part in value]
        case "<ABSENT>":
            return ABSENT
        case str():
            repeated = re.sub(r"<(.)\*(\d+)>", lambda found: found[1] * int(found[2]), value)
            return re.sub("<([A-Z_]+)>", lambda found: str(words[found[1]]), repeated)
    return value
