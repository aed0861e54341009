"""Why the engine failed, in words with a remedy: the backend, its disk, its files, and what the run itself printed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import yaml

from identity import yaml_text
from identity.aks.azure_rbac import DENIAL
from ops.stack.environment import LocalPaths, is_local
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


def backend_failure(errors: str, stack: str, backend: str | None) -> CommandError | None:
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


# pulumi/pulumi `sdk/go/common/resource/plugin/plugin.go`
_ENDED_PLUGIN: Final = re.compile(r"pulumi-resource-([\w-]+)(\.exe)? exited prematurely")
# Storage's 404 for a blob container, with which azure-native fails, unlike with other 404s (COVERAGE.md).
_NO_CONTAINER: Final = "ContainerNotFound"
# The same, `pkg/resource/deploy/step_executor.go`: with `--continue-on-error`, for a component whose registration was
# skipped because a dependency failed.
_SKIPPED: Final = re.compile(r"cannot complete a resource '[^']*::([^':]+)' whose registration isn't pending")


def remedies(lines: Sequence[str], stack: str, command: str) -> Iterator[str]:
    """The remedies for such reasons in the event log of `pulumi up` or `destroy`."""
    if any(DENIAL in line for line in lines):
        yield (
            "Azure RBAC authorizes on the management cluster, and the deployer lacks a role assignment there. "
            f"`.venv/bin/idstack doctor --stage access --stack {stack}` prints the missing one; it takes effect within "
            "five minutes, then run the command again"
        )
    if any(_NO_CONTAINER in line for line in lines):
        yield (
            "the blob container of an OIDC issuer is missing, and azure-native cannot refresh it. The container has "
            "the name of its storage account: `az storage container-rm create --public-access container "
            "--resource-group <group> --storage-account <account> --name <account>` creates it again; then run the "
            "command again with --refresh, which writes the issuer's documents"
        )
    if ended := next(filter(None, map(_ENDED_PLUGIN.search, lines)), None):
        problem = f"the plugin {ended[1]} ended unexpectedly, as if it was killed or ran out of memory. "
        if command == "destroy":
            yield f"{problem}Run `make down STACK={stack}` again, which continues"
        else:
            yield f"{problem}The resource in progress may exist: `make recover STACK={stack}` finds it, and continues"
    if names := dict.fromkeys(name for line in lines for name in _SKIPPED.findall(line)):
        yield (
            f"nothing is wrong with {', '.join(names)}: the engine has skipped them, because a dependency failed. They "
            "are unchanged, and the next run continues with them"
        )


_NO_WRITE: Final = re.compile(r"no space left on device|disk quota exceeded|file too large|read-only file system")
_FILE: Final = re.compile(r"/\S+(?=: $)")
_DRAFT: Final = re.compile(r"/\.pulumi/locks/.+\.tmp$")
_LONGEST_PATH: Final = 4096  # linux/limits.h


def backend_folder(backend: str | None) -> Path | None:
    """The folder `.pulumi` of a backend of files, None for any other backend."""
    if backend is None or (address := urlsplit(backend)).scheme != "file":
        return None
    return Path(unquote(f"{address.netloc}{address.path}")).expanduser() / ".pulumi"


def disk_failure(errors: str, stack: str) -> CommandError | None:
    """The error if the engine failed because of the backend's disk, else None.

    `errors` is its standard error or its event log. Deletes the drafts of the engine's own locks, so that the next run
    finds none.
    """
    reasons = [(match[0], _file_before(errors, match.start())) for match in _NO_WRITE.finditer(errors)]
    if not reasons:
        return None
    why, file = reasons[0]
    drafts = [file for _, file in reasons if file and _DRAFT.search(file)]
    for draft in drafts:
        with suppress(OSError):  # a read-only disk has none
            Path(draft).unlink()
    problem = f"the backend's disk is full or read-only ({why}: {file or 'the engine names no file'})"
    help_ = "make it writable" if "read-only" in why else "free some space there"
    if drafts:
        return CommandError(f"{problem}; nothing was started. To continue, {help_} and run the command again")
    return CommandError(
        f"{problem}, so the state may lack the last changes. To continue, {help_}; then `make recover STACK={stack}` "
        "finds what the state lacks, and brings the stack up"
    )


def _file_before(errors: str, end: int) -> str | None:
    """The path with a colon that ends at `end`; a search in all of an event log would take a minute."""
    match = _FILE.search(errors, max(0, end - _LONGEST_PATH), end)
    return match[0] if match else None


def unreadable_locks(backend: str | None, stack: str) -> list[Path]:
    """The truncated locks of the stack, which an engine could not write."""
    folder = backend_folder(backend)
    if folder is None:
        return []
    return sorted(file for file in folder.glob(f"locks/*/*/{stack}/*") if not _is_lock(file))


def _is_lock(file: Path) -> bool:
    try:
        return bool(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return True  # its engine has ended meanwhile
    except ValueError:
        return False


# pulumi/pulumi `pkg/backend/diy/meta.go`, of a backend of files or blobs
_META: Final = ".pulumi/meta.yaml"
_CORRUPT: Final = re.compile(r"corrupt store: .*meta\.yaml")


def remove_unreadable(paths: LocalPaths) -> None:
    """Delete broken ones of the local stacks: the records of selected stacks, and the version of the backend's layout.

    The engine writes both atomically (`pkg/workspace/workspace.go`; gocloud.dev/blob/fileblob), so that they are not
    half-written by another command. A broken one fails every command: "unable to read workspace settings", "corrupt
    store".
    """
    notes = (paths.home / "workspaces").glob("*-workspace.json")
    for file, is_whole in (*((note, _is_json) for note in notes), (paths.backend / _META, _is_version)):
        with suppress(FileNotFoundError):  # another command may have deleted it
            if not is_whole(file.read_bytes()):
                file.unlink()


def unreadable_remedy(errors: str) -> str | None:
    """The remedy if the engine's standard error reports an unreadable version of the backend, else None."""
    if _CORRUPT.search(errors) is None:
        return None
    return f"{_META} of the backend is truncated, as after a loss of power: delete it, and the engine writes it again"


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def _is_version(content: bytes) -> bool:
    try:
        document = yaml_text.load(content)
    except yaml.YAMLError:
        return False
    return isinstance(document, dict) and isinstance(document.get("version"), int)
