"""The backend of a stack, which its file records as `idstack:backend` for every command.

The engine keeps this key of the configuration, while its own changes drop unknown keys beside `config` (pulumi/pulumi
v3.259 `sdk/go/common/workspace/project.go`, ProjectStack). Decision record 0092.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ops.stack.errors import CommandError
from ops.stack.stack_document import document_in, parsed

VARIABLE: Final = "PULUMI_BACKEND_URL"
KEY: Final = "idstack:backend"
_LINE: Final = re.compile(rf"^  {KEY}:.*\n?", re.MULTILINE)
_CONFIG: Final = re.compile(r"^config:[ \t]*(#.*)?\n", re.MULTILINE)


def recorded(stack: str, root: Path) -> str | None:
    """The backend in the stack's file; None without a file, and if it names none.

    Raises CommandError for a file that cannot be read, instead of using another backend.
    """
    backend = _backend_in(document_in(root / f"Pulumi.{stack}.yaml"))
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
    if not count or _backend_in(parsed(changed, "the file")) != backend:
        raise ValueError(f"{KEY} cannot be written into this file: it has no block `config:`")
    return changed


def _backend_in(document: Mapping[str, Any]) -> object:
    return (document.get("config") or {}).get(KEY)
