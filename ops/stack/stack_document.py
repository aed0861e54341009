"""Reads a stack's file as YAML, without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ops.stack.errors import CommandError, why_unreadable


def document_in(file: Path) -> dict[str, Any]:
    """The document in a stack's file, empty for a missing or empty one; raises CommandError if it cannot be read."""
    try:
        return parsed(file.read_text(encoding="utf-8"), file.name)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file.name} cannot be read: {why_unreadable(error)}. Nothing was started") from None


def parsed(text: str, name: str) -> dict[str, Any]:
    """The document in the text of a stack's file; raises CommandError if that is not one."""
    import yaml  # slow, and `idstack token` runs at each sign-in of kubectl

    from identity import yaml_text

    reason = "it is not a YAML document of a stack"
    try:
        document = yaml_text.load(text) or {}
        if isinstance(document, dict) and _has_names(document.get("config") or {}):
            return document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        reason = f"{f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''}{error.problem}"
    except yaml.YAMLError:
        pass
    raise CommandError(f"{name} cannot be read: {reason}. Nothing was started")


def _has_names(config: object) -> bool:
    return isinstance(config, dict) and all(isinstance(key, str) for key in config)
