"""The stacks' own files (`Pulumi.<stack>.yaml`), written from the fleet file.

The engine and every other command read them. They belong into git: a run records its commit, and a renewal takes the
configuration out of that commit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from identity import yaml_text
from ops.fleet.stacks import FleetEnvironment, FleetStack
from ops.stack.errors import CommandError
from ops.stack.stack_document import BACKEND_KEY, BACKEND_VARIABLE, document_in, recorded

_CONFIGURATION: Final = "config"
_SECRETS_PROVIDER: Final = "secretsprovider"


def write_file(stack: FleetStack, root: Path) -> bool:
    """Write the stack's file in the project `root`; returns whether that changed it.

    What the engine has written into it (`encryptedkey`) stays. Raises CommandError for a file that is not YAML, and for
    one with another secrets provider, which only the engine can exchange.
    """
    content = document_in(root / stack.file_name)
    if content.get(_CONFIGURATION) == stack.configuration:
        return False
    kept = {key: value for key, value in content.items() if key != _CONFIGURATION}
    provider = kept.setdefault(_SECRETS_PROVIDER, stack.secrets_provider)
    if provider != stack.secrets_provider:
        raise CommandError(
            f"{stack.file_name} has the secrets provider {provider}, and the fleet file {stack.secrets_provider}: "
            f"correct the fleet file, or run `idstack pulumi --stack {stack.name} -- "
            "stack change-secrets-provider <key>`"
        )
    if provider is None:
        del kept[_SECRETS_PROVIDER]
    (root / stack.file_name).write_text(yaml_text.dump({**kept, _CONFIGURATION: stack.configuration}), encoding="utf-8")
    return True


def require_files(environment: FleetEnvironment, root: Path) -> None:
    """Raise CommandError unless each stack's file is what the fleet file makes of it."""
    differing = [
        stack.file_name
        for stack in environment.stacks
        if document_in(root / stack.file_name).get(_CONFIGURATION) != stack.configuration
    ]
    if differing:
        raise CommandError(
            f"these files are missing, or are not what the fleet file describes: {', '.join(differing)}. "
            f"`idstack fleet prepare --environment {environment.name}` writes them; review and commit the difference, "
            "and try again"
        )


def require_one_backend(environment: FleetEnvironment, root: Path) -> None:
    """Raise CommandError if PULUMI_BACKEND_URL or a stack's file names another backend than the fleet file.

    The fleet would create the stacks a second time.
    """
    if environment.backend is None:
        return
    variable = os.environ.get(BACKEND_VARIABLE)
    if variable not in (None, "", environment.backend):
        raise CommandError(
            f"the fleet file says that the states of {environment.name} are in {environment.backend}, and "
            f"{BACKEND_VARIABLE} is {variable}. A stack has one backend: `unset {BACKEND_VARIABLE}`, or, if the states "
            f"have moved there, correct `backend` of {environment.name} in the fleet file. Nothing was started"
        )
    others = {stack.file_name: recorded(stack.name, root) for stack in environment.stacks}
    lines = [f"- {file}: {backend}" for file, backend in others.items() if backend not in (None, environment.backend)]
    if lines:
        raise CommandError(
            "\n".join(
                [
                    f"the fleet file says that the states of {environment.name} are in {environment.backend}, and "
                    "files of its stacks name another place. Nothing was started:",
                    *lines,
                    f"If the states are there, correct `backend` of {environment.name} in the fleet file; if they have "
                    f"moved, correct `{BACKEND_KEY}` in these files",
                ]
            )
        )
