"""A stack's configuration as the program's settings, for commands that do not run the program.

They are read from the stack's file, without an engine and a login.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import chdir
from typing import Any

from identity.aks.api_server import AccessRequirements
from identity.aks.permissions import permissions
from identity.clouds import LOCAL_CLOUD, LocalEnvironment
from identity.settings import ConfigurationError, Settings, load_settings
from identity.settings.rules.authentication import OF_ONE_TYPE, refuse_changed_authentication
from identity.settings.schema.problems import NAMESPACE, for_stack
from identity.settings.schema.schema_node import PLACEHOLDER
from ops.stack import local_cloud
from ops.stack.configuration import has_secret, named_clusters, require_content, require_local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message


def settings_of(engine: Engine) -> Settings:
    """The settings of a stack.

    Raises CommandError for a configuration that the program would refuse, with its report, for an encrypted value, and
    for a local stack without a local cloud.
    """
    local_cloud.of(engine.stack)
    try:
        return settings_in_the_file_of(engine)
    except ConfigurationError as error:
        raise CommandError(for_stack(_report(engine, error), engine.stack)) from None


def require_sound_configuration(engine: Engine) -> None:
    """Raise CommandError for a stack's file that the program would refuse, with its report.

    Only the engine can read encrypted values: the program validates a file with such values.
    """
    (require_local_cloud if engine.is_local else require_content)(engine.file.name, engine.document())
    written = engine.written()
    if has_secret(list(written.values())):
        return
    try:
        with chdir(engine.root):  # as the program, to which paths in the file are relative
            validated(written, local_cloud.for_validation(engine.stack))
    except ConfigurationError as error:
        raise CommandError(for_stack(_report(engine, error), engine.stack)) from None


def _report(engine: Engine, error: ConfigurationError) -> str:
    """The report, unless something else is to be known first."""
    blank = {problem.place for problem in error.problems if problem.found.endswith(PLACEHOLDER)}
    if blank >= {("tenantId",), ("subscriptionId",)}:
        return message("settings.example", file=engine.file.name, error=error)
    if any(problem.rule in OF_ONE_TYPE for problem in error.problems):
        clusters = named_clusters(engine.written().get("hostedClusters"))
        try:
            refuse_changed_authentication(
                ((row["name"], row.get("authentication")) for row in clusters), engine.outputs()
            )
        except CommandError:
            pass  # without a login nobody knows
        except ConfigurationError as known:
            return str(known)
    return str(error)


def access_requirements(engine: Engine) -> AccessRequirements:
    """What the stack needs on its management cluster; for an invalid configuration the permissions of all stacks."""
    try:
        return AccessRequirements.of(settings_of(engine))
    except CommandError:
        return AccessRequirements(permissions())


def settings_in_the_file_of(engine: Engine) -> Settings:
    """The settings in the stack's own file.

    Raises ConfigurationError for what the program would refuse, and CommandError for a stack without a file, for an
    encrypted value, and for a local stack without a local cloud.
    """
    written = engine.written()
    if hidden := sorted(f"{NAMESPACE}:{key}" for key, value in written.items() if has_secret(value)):
        raise CommandError(message("settings.encrypted", stack=engine.stack, keys=", ".join(hidden)))
    return validated(written, local_cloud.of(engine.stack) if written.get("cloud") == LOCAL_CLOUD else None)


def validated(written: Mapping[str, Any], local: LocalEnvironment | None) -> Settings:
    """The settings in the values of a stack's file; raises ConfigurationError for what the program would refuse."""
    texts = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in written.items()
        if value is not None
    }
    return load_settings(texts, secret_keys=(), local=local, written=written)
