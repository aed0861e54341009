"""Documents that are plain data but for some values: they stand in a `documents.yaml` beside their module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from localcloud.core import yaml_text

_WORD: Final = re.compile(r"\{([a-z_]+)\}")


def document(module: str, name: str, /, **words: Any) -> dict[str, Any]:
    """The document `name` of the `documents.yaml` beside a module (its `__file__`), with the words of its braces.

    Raises KeyError for a document or a word that is not there.
    """
    filled: dict[str, Any] = fill(_documents(Path(module).parent)[name], words)
    return filled


@cache
def _documents(folder: Path) -> dict[str, Any]:
    documents: dict[str, Any] = yaml_text.load((folder / "documents.yaml").read_bytes())
    return documents


def fill(value: Any, words: Mapping[str, Any]) -> Any:
    """A copy with the words for their names in braces; a text that is one name alone becomes the word, of any type."""
    match value:
        case str():
            whole = _WORD.fullmatch(value)
            return words[whole[1]] if whole else _WORD.sub(lambda name: str(words[name[1]]), value)
        case list():
            return [fill(item, words) for item in value]
        case dict():
            return {fill(key, words): fill(item, words) for key, item in value.items()}
    return value
