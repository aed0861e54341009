"""A stack's configuration as the program's own settings, for commands that do not run the program."""

from __future__ import annotations

import json
from typing import Final

from identity.settings import ConfigurationError, Settings, load_settings
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

_BOOLEANS: Final = {True: "true", False: "false"}


def settings_of(engine: Engine) -> Settings:
    """The settings; raises CommandError for a configuration that the program would refuse, with its report."""
    raw = {key: _text(value) for key, value in engine.configured().items()}
    try:
        return load_settings(raw, secret_keys=(), local=local_cloud.of(engine.stack))
    except ConfigurationError as error:
        raise CommandError(str(error)) from None


def namespaces_of(engine: Engine) -> tuple[str, ...]:
    """Namespaces in which the stack has objects; none for a configuration that the program would refuse."""
    try:
        return settings_of(engine).namespaces
    except CommandError:
        return ()


def _text(value: object) -> str:
    """A value as Pulumi hands it to a program: structures as JSON."""
    if isinstance(value, bool):
        return _BOOLEANS[value]
    return value if isinstance(value, str) else json.dumps(value)
