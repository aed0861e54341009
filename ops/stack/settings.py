"""A stack's configuration as the program's own settings, for commands that do not run the program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import chdir
from typing import Any

from identity.access.permissions import Permission, needed, permissions
from identity.access.stack_rights import rights_of
from identity.clouds import LOCAL_CLOUD
from identity.settings import ConfigurationError, Settings, load_settings
from identity.settings.problems import report_for
from identity.settings.schema.problems import NAMESPACE
from identity.settings.stack_file import written_for
from ops.stack import local_cloud
from ops.stack.configuration import require_local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError


def settings_of(engine: Engine) -> Settings:
    """The settings.

    Raises CommandError for a configuration that the program would refuse, with its report, and for a local stack
    without a local cloud.
    """
    local_cloud.of(engine.stack)
    try:
        return load(engine.stack, texts_of(engine), written_for(engine.stack, engine.root))
    except ConfigurationError as error:
        raise CommandError(report_for(error, engine.stack)) from None


def require_sound_configuration(engine: Engine) -> None:
    """Raise CommandError for a stack's file that the program would refuse, with its report; nothing else is asked.

    What the file has encrypted only the engine can read: such a file is left to the program.
    """
    if engine.is_local:
        require_local_cloud(engine.root / f"Pulumi.{engine.stack}.yaml")
    written = {key: value for key, value in engine.written().items() if ":" not in key}
    if any(map(_is_encrypted, written.values())):
        return
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in written.items()}
    local = local_cloud.record() or local_cloud.NOWHERE if engine.is_local else None
    try:
        with chdir(engine.root):  # as the program, to which paths in the file are relative
            load_settings(texts, secret_keys=(), local=local, written=written)
    except ConfigurationError as error:
        raise CommandError(report_for(error, engine.stack)) from None


def rights_on_cluster(engine: Engine) -> tuple[Permission, ...]:
    """What the stack needs on its management cluster; all that any stack may need, if its program would refuse it."""
    try:
        return needed(rights_of(settings_of(engine)))
    except CommandError:
        return permissions()


def texts_of(engine: Engine) -> dict[str, str]:
    """The configuration by key as the engine passes it to the program; raises CommandError if a value is secret."""
    texts, secret_keys = engine.raw_configuration()
    if secret_keys:
        raise CommandError(
            f"{_named(secret_keys)} is secret, and is not decrypted here; `make preview STACK={engine.stack}` checks "
            "it with the rest"
        )
    return texts


def texts_in_the_file_of(engine: Engine) -> dict[str, str]:
    """The same out of the stack's own file: no engine runs, and there is no sign-in.

    Raises CommandError for a stack without a file, and for an encrypted value.
    """
    written = {key: value for key, value in engine.written().items() if ":" not in key}
    if hidden := sorted(key for key, value in written.items() if _is_encrypted(value)):
        raise CommandError(
            f"Pulumi.{engine.stack}.yaml has an encrypted value in {_named(hidden)}, and the file alone is read, "
            "without the stack's key. No key of the configuration is secret: "
            f"`idstack pulumi --stack {engine.stack} -- config set --plaintext <key> <value>` writes it readably"
        )
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in written.items()}


def load(stack: str, texts: Mapping[str, str], written: Mapping[str, Any] | None) -> Settings:
    """The settings in these texts; `written` as `load_settings` takes it.

    Raises ConfigurationError for what the program would refuse, CommandError for a local stack without a local cloud.
    """
    local = local_cloud.of(stack) if texts.get("cloud") == LOCAL_CLOUD else None
    return load_settings(texts, secret_keys=(), local=local, written=written)


def _named(keys: list[str]) -> str:
    return ", ".join(f"{NAMESPACE}:{key}" for key in keys)


def _is_encrypted(value: object) -> bool:
    return isinstance(value, Mapping) and (set(value) == {"secure"} or any(map(_is_encrypted, value.values())))
