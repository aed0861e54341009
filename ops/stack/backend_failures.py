"""Explains the engine's errors (pulumi v3.259) about a stack's backend: login, missing stack, passphrase, container.

After a failed write to a storage account's container the engine crashes with a nil pointer instead of the reason, in
gocloud.dev/blob/azureblob (`writer.open` and `writer.Close`; after a 403).
"""

from __future__ import annotations

import re
import shlex
from typing import Final

from ops.stack.environment import is_local
from ops.stack.errors import CommandError

_NOT_LOGGED_IN: Final = "PULUMI_ACCESS_TOKEN must be set"
_NO_STACK: Final = re.compile(r"no stack named '(?P<stack>[^']+)' found")
_WRONG: Final = "incorrect passphrase"
_NO_PASSPHRASE: Final = "passphrase must be set with PULUMI_CONFIG_PASSPHRASE"
_NO_FOLDER: Final = re.compile(r"unable to open state directory .+: stat (?P<folder>.+): no such file or directory")
_UNREACHABLE: Final = re.compile(r'unable to open bucket|read "?\.pulumi/meta\.yaml|could not list bucket')
_REASON: Final = re.compile(
    r"(no such host|ContainerNotFound|AuthenticationFailed|AuthorizationFailure|"
    r"AZURE_STORAGE_ACCOUNT|failed to acquire a token)"
)
_REFUSED: Final = re.compile(r"[A-Z]+ https://(?P<container>[^/\s]+\.blob\.[^/\s]+/[^/\s?]+)\S*\n-+\nRESPONSE 403")
_CRASHED: Final = re.compile(r"gocloud\.dev/blob/azureblob\.\(\*writer\)\.Close")
# pulumi/pulumi `pkg/backend/diy/lock.go`: before any change.
_AT_THE_LOCK: Final = re.compile(r"backend/diy\.\(\*diyBackend\)\.Lock\(")
_ROLES: Final = (
    "To read a stack requires the role Storage Blob Data Reader on the container, to change one Storage Blob Data "
    "Contributor (docs/guides/pull-requests.md); a new assignment takes effect within ten minutes"
)


class NoSuchStackError(CommandError):
    """The backend has no stack of this name."""


def failure(errors: str, stack: str, backend: str | None) -> CommandError | None:
    """The error with a remedy if the engine failed for one of these reasons, else None.

    Args:
        errors: the engine's standard error.
        stack: the stack of the command.
        backend: the address of its backend; None for that of the login.
    """
    if refused := _REFUSED.search(errors):
        return CommandError(
            f"the signed-in identity may not use the container of the state, {refused['container']}. {_ROLES}"
        )
    if _CRASHED.search(errors):
        return _crash(errors, stack)
    where = "the backend that you are logged in to" if backend is None else f"the backend {backend}"
    if missing := _NO_STACK.search(errors):
        name = missing["stack"].rpartition("/")[2]
        if is_local(name):
            return NoSuchStackError(f"{where} has no stack {name}: `make up STACK={name}` creates it")
        return NoSuchStackError(
            f"{where} has no stack {name}. If it is in another one, name that as `idstack:backend` in "
            f"Pulumi.{name}.yaml; `idstack init {name}` creates a new one"
        )
    if _NOT_LOGGED_IN in errors:
        return CommandError(
            f"the state of the stack {stack} cannot be located: Pulumi.{stack}.yaml records no `idstack:backend`, "
            f"PULUMI_BACKEND_URL is not set, and there is no login. `idstack pulumi --stack {stack} -- config set "
            f"backend 'azblob://<container>?storage_account=<account>'` records it, or `idstack pulumi --stack {stack} "
            "-- login` uses Pulumi Cloud"
        )
    if _WRONG in errors or _NO_PASSPHRASE in errors:
        problem = "is not the one" if _WRONG in errors else "is missing, the one"
        return CommandError(
            f"the passphrase {problem} that encrypts the secrets of the stack {stack}: set PULUMI_CONFIG_PASSPHRASE, "
            "or PULUMI_CONFIG_PASSPHRASE_FILE to a file that has it. Nothing was changed"
        )
    if missing := _NO_FOLDER.search(errors):
        return CommandError(
            f"{where} is a folder that does not exist. Mount it; if this is its first stack, create it: "
            f"`mkdir -p {shlex.quote(missing['folder'])}`. If the address is wrong, correct `idstack:backend` in "
            f"Pulumi.{stack}.yaml. Then run the command again"
        )
    if backend and backend.startswith("azblob://") and _UNREACHABLE.search(errors):
        reason = _REASON.search(errors)
        return CommandError(
            f"{where} cannot be read{f' ({reason[0]})' if reason else ''}. Sign in with `az login` (in CI: the "
            "variables AZURE_CLIENT_ID and AZURE_TENANT_ID) with an identity that has the role Storage Blob Data "
            f"Reader on the container. If the address is wrong, correct `idstack:backend` in Pulumi.{stack}.yaml"
        )
    return None


def _crash(errors: str, stack: str) -> CommandError:
    problem = (
        "the state could not be written to its container, and the engine crashed without a reason. Either the storage "
        f"account cannot be reached, or the signed-in identity may not write there. {_ROLES}"
    )
    if _AT_THE_LOCK.search(errors):
        return CommandError(f"{problem}. Nothing was started: correct that and run the command again")
    return CommandError(
        f"{problem}. The state may lack the last changes: after the correction `make recover STACK={stack}` finds "
        "them, and brings the stack up"
    )
