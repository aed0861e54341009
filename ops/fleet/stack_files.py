"""The stacks' own files (`Pulumi.<stack>.yaml`), written from the fleet file.

They are what the engine and every other command of a stack read. They belong into git: a run records the commit that
its stack was brought up from, and a renewal takes the configuration out of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from ops.fleet.documents import yaml_text
from ops.fleet.stacks import FleetEnvironment, FleetStack
from ops.stack.errors import CommandError
from ops.stack.recorded_backend import KEY, recorded

_CONFIGURATION: Final = "config"
_SECRETS_PROVIDER: Final = "secretsprovider"


def write_file(stack: FleetStack, root: Path) -> bool:
    """Write the stack's file in the project `root`; returns whether that changed it.

    What the engine has written into it (`encryptedkey`) stays. Raises CommandError for a file that is not YAML, and for
    one with another secrets provider, which only the engine can exchange.
    """
    found = _found(stack, root)
    if found is not None and _is_as_described(stack, found):
        return False
    kept = {key: value for key, value in (found or {}).items() if key != _CONFIGURATION}
    provider = kept.setdefault(_SECRETS_PROVIDER, stack.secrets_provider)
    if provider != stack.secrets_provider:
        raise CommandError(
            f"{stack.file_name} has the secrets provider {provider}, and the fleet file {stack.secrets_provider}: "
            f"correct the fleet file, or run `idstack pulumi --stack {stack.name} -- "
            "stack change-secrets-provider <key>`"
        )
    if provider is None:
        del kept[_SECRETS_PROVIDER]
    (root / stack.file_name).write_text(yaml_text([{**kept, _CONFIGURATION: stack.configuration}]), encoding="utf-8")
    return True


def require_files(environment: FleetEnvironment, root: Path) -> None:
    """Raise CommandError unless each stack's file is what the fleet file makes of it."""
    other = []
    for stack in environment.stacks:
        found = _found(stack, root)
        if found is None or not _is_as_described(stack, found):
            other.append(stack.file_name)
    if other:
        raise CommandError(
            f"these files are missing, or are not what the fleet file describes: {', '.join(other)}. "
            f"`idstack fleet prepare --environment {environment.name}` writes them; look at the difference, commit it, "
            "and try again"
        )


def require_one_backend(environment: FleetEnvironment, root: Path) -> None:
    """Raise CommandError for a stack whose file records another backend than the fleet file.

    It would be made a second time in the fleet's, while its state is in the other.
    """
    if environment.backend is None:
        return
    others = {stack.file_name: recorded(stack.name, root) for stack in environment.stacks}
    if lines := [f"- {file}: {each}" for file, each in others.items() if each not in (None, environment.backend)]:
        raise CommandError(
            "\n".join(
                [
                    f"the fleet file says that the states of {environment.name} are in {environment.backend}, and "
                    "files of its stacks name another place. Nothing was started:",
                    *lines,
                    f"If the states are there, correct `backend` of {environment.name} in the fleet file; if they have "
                    f"moved, correct `{KEY}` in these files",
                ]
            )
        )


def _found(stack: FleetStack, root: Path) -> dict[str, Any] | None:
    try:
        found = yaml.safe_load((root / stack.file_name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (yaml.YAMLError, UnicodeDecodeError):
        found = ""
    if found is None or isinstance(found, dict):
        return found
    raise CommandError(f"{stack.file_name} is not a stack file: correct it, or remove it")


def _is_as_described(stack: FleetStack, found: dict[str, Any]) -> bool:
    return bool(found.get(_CONFIGURATION) == stack.configuration)
