"""The backend of a stack: recorded in the stack's file as `idstack:backend`, and used by every command of the stack.

The engine keeps this key of the configuration; it drops an unknown key beside `config` with each of its own changes
(pulumi/pulumi v3.259 `sdk/go/common/workspace/project.go`, ProjectStack). Decision record 0092.
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

    Raises CommandError for a file that cannot be read: the stack's state would be looked for in another backend.
    """
    file = root / f"Pulumi.{stack}.yaml"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file.name} cannot be read: {why_unreadable(error)}. Nothing was started") from None
    found = _backend_in(text, file.name)
    return found if isinstance(found, str) and found else None


def backend_of(stack: str, root: Path, base: Mapping[str, str]) -> str | None:
    """The address of the stack's backend: what its file records, or PULUMI_BACKEND_URL in `base`.

    None leaves it to `pulumi login`. Raises CommandError if both name one and they differ, and as `recorded` does.
    """
    known, wanted = recorded(stack, root), base.get(VARIABLE) or None
    if known is not None and wanted is not None and known != wanted:
        raise CommandError(
            f"Pulumi.{stack}.yaml says that the state of {stack} is in {known}, and {VARIABLE} is {wanted}. A stack "
            f"has one backend: `unset {VARIABLE}`, or, if the state has moved there, correct {KEY} in the file. "
            "Nothing was started"
        )
    return known or wanted


def with_backend(text: str, backend: str) -> str:
    """The text of a stack's file in which `idstack:backend` is this address; comments and all else stay.

    Raises ValueError for a text without a block `config:`.
    """
    line = f"  {KEY}: {backend}\n"
    changed, count = _LINE.subn(lambda _: line, text, count=1)
    if not count:
        changed, count = _CONFIG.subn(lambda found: found[0] + line, text, count=1)
    if not count or _backend_in(changed, "the file") != backend:
        raise ValueError(f"{KEY} cannot be written into this file: it has no block `config:`")
    return changed


def _backend_in(text: str, name: str) -> object:
    """What the text of a stack's file records; raises CommandError if it is none."""
    import yaml  # `idstack token` runs at each sign-in of kubectl and reads no file

    try:
        return ((yaml.safe_load(text) or {}).get("config") or {}).get(KEY)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise CommandError(f"{name} cannot be read: {where}{error.problem}. Nothing was started") from None
    except (yaml.YAMLError, AttributeError):
        raise CommandError(
            f"{name} cannot be read: it is not a YAML document of a stack. Nothing was started"
        ) from None
