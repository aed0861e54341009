"""The backend of a stack, which its file records as `idstack:backend` for every command.

The engine keeps this key of the configuration, while its own changes drop unknown keys beside `config` (pulumi/pulumi
v3.259 `sdk/go/common/workspace/project.go`, ProjectStack). Decision record 0092.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ops.stack.errors import CommandError, why_unreadable

VARIABLE: Final = "PULUMI_BACKEND_URL"
KEY: Final = "idstack:backend"
_LINE: Final = re.compile(rf"^  {KEY}:.*\n?", re.MULTILINE)
_CONFIG: Final = re.compile(r"^config:[ \t]*(#.*)?\n", re.MULTILINE)


def recorded(stack: str, root: Path) -> str | None:
    """The backend in the stack's file; None without a file, and if it names none.

    Raises CommandError for a file that cannot be read, instead of using another backend.
    """
    file = root / f"Pulumi.{stack}.yaml"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file.name} cannot be read: {why_unreadable(error)}. Nothing was started") from None
    backend = _backend_in(text, file.name)
    return backend if isinstance(backend, str) and backend else None


def backend_of(stack: str, root: Path, base: Mapping[str, str]) -> str | None:
    """The address of the stack's backend, by its file or by PULUMI_BACKEND_URL in `base`.

    None leaves it to `pulumi login`. Raises CommandError if the two differ, and as `recorded` does.
    """
    recorded_backend, variable = recorded(stack, root), base.get(VARIABLE) or None
    if recorded_backend is not None and variable is not None and recorded_backend != variable:
        raise CommandError(
            f"Pulumi.{stack}.yaml says that the state of {stack} is in {recorded_backend}, and {VARIABLE} is "
            f"{variable}. A stack has one backend: `unset {VARIABLE}`, or, if the state has moved there, correct {KEY} "
            "in the file. Nothing was started"
        )
    return recorded_backend or variable


def with_backend(text: str, backend: str) -> str:
    """The text of a stack's file with this address as `idstack:backend`; comments and the rest stay.

    Raises ValueError for a text without a block `config:`.
    """
    line = f"  {KEY}: {backend}\n"
    changed, count = _LINE.subn(lambda _: line, text, count=1)
    if not count:
        changed, count = _CONFIG.subn(lambda match: match[0] + line, text, count=1)
    if not count or _backend_in(changed, "the file") != backend:
        raise ValueError(f"{KEY} cannot be written into this file: it has no block `config:`")
    return changed


def _backend_in(text: str, name: str) -> object:
    """The backend in the text of a stack's file; raises CommandError if that is not one."""
    import yaml  # slow, and `idstack token` runs at each sign-in of kubectl

    from identity import yaml_text

    try:
        return ((yaml_text.load(text) or {}).get("config") or {}).get(KEY)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise CommandError(f"{name} cannot be read: {where}{error.problem}. Nothing was started") from None
    except (yaml.YAMLError, AttributeError):
        raise CommandError(
            f"{name} cannot be read: it is not a YAML document of a stack. Nothing was started"
        ) from None
