"""The report of a refused configuration with complete commands, which can be typed as they are printed."""

from __future__ import annotations

import re
from typing import Final

from identity.settings.schema.problems import ConfigurationError

_UNNAMED: Final = re.compile(r"`idstack (?:pulumi|up|preview)(?= -- | --refresh|`)")


def report_for(error: ConfigurationError, stack: str) -> str:
    """The whole report of a stack's configuration."""
    return for_stack(str(error), stack)


def for_stack(text: str, stack: str) -> str:
    """The text with the stack's name in each command of `idstack` that acts on a stack and names none."""
    return _UNNAMED.sub(rf"\g<0> --stack {stack}", text)
