"""The report of a refused configuration with complete commands, which can be typed as they are printed."""

from __future__ import annotations

import re
from typing import Final

_UNNAMED: Final = re.compile(r"`\.venv/bin/idstack (?:pulumi|up|preview)(?= -- | --refresh|`)")


def for_stack(text: str, stack: str) -> str:
    """The text with the stack's name in each command of `idstack` that acts on a stack and names none."""
    return _UNNAMED.sub(rf"\g<0> --stack {stack}", text)
