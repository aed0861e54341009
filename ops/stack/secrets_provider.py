"""Requires a passphrase for a stack on Azure whose secrets no key service encrypts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ops.stack.errors import CommandError
from ops.stack.stack_document import document_in

_VALUE: Final = "PULUMI_CONFIG_PASSPHRASE"
_FILE: Final = "PULUMI_CONFIG_PASSPHRASE_FILE"
# Values of `secretsprovider` that name no key service.
_NO_KEY: Final = frozenset({None, "", "default", "passphrase"})


def require_passphrase(configuration: Path, stack: str, environment: Mapping[str, str]) -> None:
    """Raise CommandError if the stack would be encrypted with an empty passphrase, which the engine accepts.

    `configuration` is the stack's file, which may be missing; `environment` has the engine's variables. The value takes
    precedence over the file; without both the engine prompts (pulumi/pulumi `pkg/secrets/passphrase/manager.go`).
    """
    if document_in(configuration).get("secretsprovider") in _NO_KEY and (source := _empty(environment)):
        raise CommandError(
            f"the stack {stack} has no key service that encrypts its secrets, and {source} is empty: everybody who "
            f"reads the state could read them. Encrypt it with a key: `idstack pulumi --stack {stack} -- stack "
            "change-secrets-provider azurekeyvault://<vault>.vault.azure.net/keys/<key>`, or set "
            f"{_VALUE} or {_FILE} (docs/guides/stacks.md)"
        )


def passphrase_fault(environment: Mapping[str, str]) -> str | None:
    """Why these variables give no passphrase, for a run that cannot prompt; None if they give one."""
    if source := _empty(environment):
        return f"{source} is empty"
    file = environment.get(_FILE)
    if file and not environment.get(_VALUE) and not Path(file).is_file():
        return f"{_FILE} is {file}, which is not a file"
    return None if environment.get(_VALUE) or environment.get(_FILE) else f"neither {_VALUE} nor {_FILE} is set"


def _empty(environment: Mapping[str, str]) -> str:
    """The variable that gives an empty passphrase; empty if none does."""
    if (value := environment.get(_VALUE)) is not None:
        return "" if value.strip() else _VALUE
    try:
        file = Path(environment.get(_FILE, ""))
        return f"the file of {_FILE}" if file.is_file() and not file.read_text(encoding="utf-8").strip() else ""
    except (OSError, ValueError):
        return ""  # the engine reports it
