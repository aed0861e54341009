"""Loads Pulumi's raw configuration as typed settings."""

from __future__ import annotations

import os
from pathlib import Path

import pulumi

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment
from identity.settings import Settings, load_settings
from identity.settings.schema.problems import NAMESPACE
from identity.settings.stack_file import written_for


def load() -> Settings:
    """Load the stack's settings from Pulumi's configuration.

    Raises ConfigurationError with every problem, and RunError if the record of the local cloud cannot be read.
    """
    # Not the project's name: a program of another project has settings of its own.
    namespace = f"{NAMESPACE}:"
    config = {
        key.removeprefix(namespace): value
        for key, value in pulumi.runtime.get_config_env().items()
        if key.startswith(namespace)
    }
    secret_keys = [key.removeprefix(namespace) for key in pulumi.runtime.get_config_secret_keys_env()]
    written = written_for(pulumi.get_stack(), Path.cwd())
    return load_settings(config, secret_keys=secret_keys, local=_local_environment(), written=written)


def _local_environment() -> LocalEnvironment | None:
    path = os.environ.get(LOCAL_ENVIRONMENT_VARIABLE)
    if not path:
        return None
    try:
        return LocalEnvironment.from_file(Path(path))
    except (OSError, ValueError) as error:
        raise pulumi.RunError(
            f"{LOCAL_ENVIRONMENT_VARIABLE} does not name a record of the local cloud ({error}). `make up` starts the "
            "local cloud and sets the variable. For a stack on Azure, unset it."
        ) from None
