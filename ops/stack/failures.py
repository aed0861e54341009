"""Why an engine run failed, in words with a remedy: one table of the reasons, and the order in which they are tried."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from identity.aks.azure_rbac import DENIAL
from identity.credentials.symptom import GENERIC_PLACEHOLDERS, Family
from identity.credentials.symptoms import SYMPTOMS
from ops.stack import state_file
from ops.stack.environment import LOCAL_STACKS, is_local
from ops.stack.errors import CommandError
from ops.stack.lock import LockedError, StartedEngines, is_locked, owners, stack_of, truncated_locks
from ops.stack.stack_document import BACKEND_VARIABLE


class NoSuchStackError(CommandError):
    """The backend has no stack of this name."""


class VanishedDraftError(CommandError):
    """The backend cannot be listed now, because another engine has replaced a file meanwhile."""


@dataclass(frozen=True)
class EngineFailure:
    """A reason for a failed run: how the engine prints it, and what it means.

    `message` has the fields `stack`, `where` (its backend), `resume` (how to continue after a crash), and the groups of
    `pattern`. `backend` is the beginning of the backends' addresses for which it holds.
    """

    pattern: re.Pattern[str]
    message: str
    error: type[CommandError] = CommandError
    backend: str = ""


_ROLES: Final = (
    "To read a stack requires the role Storage Blob Data Reader on the container, to change one Storage Blob Data "
    "Contributor (docs/guides/pull-requests.md); a new assignment takes effect within ten minutes"
)
_CRASHED: Final = (
    "the state could not be written to its container, and the engine crashed without a reason. Either the storage "
    f"account cannot be reached, or the signed-in identity may not write there. {_ROLES}. "
)
_PASSPHRASE: Final = (
    " that encrypts the secrets of the stack {stack}: set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE "
    "to a file that has it. Nothing was changed"
)
_UNREACHABLE: Final = r"unable to open bucket|read \"?\.pulumi/meta\.yaml|could not list bucket"
_REASON: Final = (
    "no such host|ContainerNotFound|AuthenticationFailed|AuthorizationFailure|AZURE_STORAGE_ACCOUNT|"
    "failed to acquire a token"
)
_SIGN_IN: Final = (
    ". Sign in with `az login` (in CI: the variables AZURE_CLIENT_ID and AZURE_TENANT_ID) with an identity that has "
    "the role Storage Blob Data Reader on the container. If the address is wrong, correct `idstack:backend` in "
    "Pulumi.{stack}.yaml"
)
# On the engine's standard error, the first that matches: a special case stands before a general one.
OF_THE_BACKEND: Final = (
    EngineFailure(
        re.compile(r"[A-Z]+ https://(?P<container>[^/\s]+\.blob\.[^/\s]+/[^/\s?]+)\S*\n-+\nRESPONSE 403"),
        f"the signed-in identity may not use the container of the state, {{container}}. {_ROLES}",
    ),
    # pulumi/pulumi `pkg/backend/diy/lock.go`: before any change.
    EngineFailure(
        re.compile(r"(?s)gocloud\.dev/blob/azureblob\.\(\*writer\)\.Close.*backend/diy\.\(\*diyBackend\)\.Lock\("),
        f"{_CRASHED}Nothing was started: correct that and run the command again",
    ),
    EngineFailure(
        re.compile(r"gocloud\.dev/blob/azureblob\.\(\*writer\)\.Close"),
        f"{_CRASHED}The state may lack the last changes: after the correction `.venv/bin/idstack recover --stack "
        f"{{stack}}` finds them, and brings the stack up",
    ),
    EngineFailure(
        re.compile(rf"no stack named '([^']+/)?(?P<stack>{LOCAL_STACKS})' found"),
        "{where} has no stack {stack}: `.venv/bin/idstack up --stack {stack}` creates it",
        NoSuchStackError,
    ),
    EngineFailure(
        re.compile(r"no stack named '([^']+/)?(?P<stack>[^/']+)' found"),
        "{where} has no stack {stack}. If it is in another one, name that as `idstack:backend` in Pulumi.{stack}.yaml; "
        "`.venv/bin/idstack init {stack}` creates a new one",
        NoSuchStackError,
    ),
    EngineFailure(
        re.compile("PULUMI_ACCESS_TOKEN must be set"),
        "the state of the stack {stack} cannot be located: Pulumi.{stack}.yaml records no `idstack:backend`, "
        "PULUMI_BACKEND_URL is not set, and there is no login. `.venv/bin/idstack pulumi --stack {stack} -- config set "
        "backend 'azblob://<container>?storage_account=<account>'` records it, or `.venv/bin/idstack pulumi --stack "
        "{stack} -- login` uses Pulumi Cloud",
    ),
    EngineFailure(re.compile("incorrect passphrase"), f"the passphrase is not the one{_PASSPHRASE}"),
    EngineFailure(
        re.compile("passphrase must be set with PULUMI_CONFIG_PASSPHRASE"),
        f"the passphrase is missing, the one{_PASSPHRASE}",
    ),
    EngineFailure(
        re.compile(r"unable to open state directory .+: stat (?P<folder>.+): no such file or directory"),
        "{where} is a folder that does not exist. Mount it; if this is its first stack, create it: `mkdir -p "
        "'{folder}'`. If the address is wrong, correct `idstack:backend` in Pulumi.{stack}.yaml. Then run the command "
        "again",
    ),
    EngineFailure(
        re.compile(rf"(?s)^(?=.*({_UNREACHABLE})).*?(?P<reason>{_REASON})"),
        f"{{where}} cannot be read ({{reason}}){_SIGN_IN}",
        backend="azblob://",
    ),
    EngineFailure(re.compile(_UNREACHABLE), f"{{where}} cannot be read{_SIGN_IN}", backend="azblob://"),
    # pulumi/pulumi `pkg/backend/diy/meta.go`, of a backend of files or blobs
    EngineFailure(
        re.compile(r"corrupt store: .*meta\.yaml"),
        ".pulumi/meta.yaml of the backend is truncated, as after a loss of power: delete it, and the engine writes it "
        "again",
    ),
    # gocloud.dev/blob/fileblob: a draft that has vanished meanwhile fails the whole listing.
    EngineFailure(
        re.compile(r"list bucket: blob \(code=NotFound\)"),
        "{where} could not be listed, because other engines write their states there: run the command again",
        VanishedDraftError,
    ),
)
# In the event log of `pulumi up` and `destroy`, each that matches.
OF_A_RUN: Final = (
    EngineFailure(
        re.compile(re.escape(DENIAL)),
        "Azure RBAC authorizes on the management cluster, and the deployer lacks a role assignment there. "
        "`.venv/bin/idstack doctor --stage access --stack {stack}` prints the missing one; it takes effect within "
        "five minutes, then run the command again",
    ),
    *(
        EngineFailure(
            re.compile("|".join(row.words or (row.name,))),
            f"{row.cause}: {row.fix.format_map(GENERIC_PLACEHOLDERS).replace('<stack>', '{stack}')}",
        )
        for row in SYMPTOMS
        if row.family is Family.RUN
    ),
    # Storage's 404 for a blob container, with which azure-native fails, unlike with other 404s (COVERAGE.md).
    EngineFailure(
        re.compile("ContainerNotFound"),
        "the blob container of an OIDC issuer is missing, and azure-native cannot refresh it. The container has "
        "the name of its storage account: `az storage container-rm create --public-access container "
        "--resource-group <group> --storage-account <account> --name <account>` creates it again; then run the "
        "command again with --refresh, which writes the issuer's documents",
    ),
    # pulumi/pulumi `sdk/go/common/resource/plugin/plugin.go`
    EngineFailure(
        re.compile(r"pulumi-resource-(?P<plugin>[\w-]+)(\.exe)? exited prematurely"),
        "the plugin {plugin} ended unexpectedly, as if it was killed or ran out of memory. {resume}",
    ),
    # pulumi/pulumi `pkg/resource/deploy/step_executor.go`: with `--continue-on-error`, for a component whose
    # registration was skipped because a dependency failed.
    EngineFailure(
        re.compile(r"cannot complete a resource '[^']*::(?P<names>[^':]+)' whose registration isn't pending"),
        "nothing is wrong with {names}: the engine has skipped them, because a dependency failed. They are unchanged, "
        "and the next run continues with them",
    ),
)


def failure_of(errors: str, said: str, stack: str, environment: Mapping[str, str], command: str = "") -> CommandError:
    """The error for a failed engine.

    Args:
        errors: the engine's standard error.
        said: the message for a reason that is not known.
        stack: the stack of the command.
        environment: that of the engine.
        command: the engine's command, if it locks the stack.
    """
    backend = environment.get(BACKEND_VARIABLE)
    if is_locked(errors):
        named = stack_of(errors) or stack  # a move of a state has two stacks
        engines = StartedEngines.of(named, environment)
        return LockedError(named, owners(errors), engines=engines, is_local=is_local(named), command=command)
    if failure := (
        state_file.damage(errors, stack, backend)
        or disk_failure(errors, stack)
        or backend_failure(errors, stack, backend)
    ):
        return failure
    if state_file.is_unsound(errors) and (files := truncated_locks(backend, stack)):
        engines = StartedEngines.of(stack, environment)
        return LockedError(stack, (), engines=engines, is_local=is_local(stack), command=command, unreadable=files)
    return CommandError(said)


def backend_failure(errors: str, stack: str, backend: str | None) -> CommandError | None:
    """The first reason in `OF_THE_BACKEND`; `backend` is its address, None for that of the login."""
    where = "the backend that you are logged in to" if backend is None else f"the backend {backend}"
    rows = (row for row in OF_THE_BACKEND if (backend or "").startswith(row.backend))
    return next(_explained(rows, errors, {"stack": stack, "where": where}), None)


def remedies(lines: Iterable[str], stack: str, command: str) -> Iterator[str]:
    """Every reason in `OF_A_RUN`, by the event log of `pulumi up` or `destroy`."""
    resume = f"The resource in progress may exist: `.venv/bin/idstack recover --stack {stack}` finds it, and continues"
    if command == "destroy":
        resume = f"Run `.venv/bin/idstack down --stack {stack}` again, which continues"
    yield from map(str, _explained(OF_A_RUN, "\n".join(lines), {"stack": stack, "resume": resume}))


def _explained(rows: Iterable[EngineFailure], text: str, fields: Mapping[str, str]) -> Iterator[CommandError]:
    for row in rows:
        if found := list(row.pattern.finditer(text)):
            groups = {name: ", ".join(dict.fromkeys(match[name] for match in found)) for name in row.pattern.groupindex}
            yield row.error(row.message.format_map({**fields, **groups}))


_NO_WRITE: Final = re.compile(r"no space left on device|disk quota exceeded|file too large|read-only file system")
_FILE: Final = re.compile(r"/\S+(?=: $)")
_DRAFT: Final = re.compile(r"/\.pulumi/locks/.+\.tmp$")
_LONGEST_PATH: Final = 4096  # linux/limits.h


def disk_failure(errors: str, stack: str) -> CommandError | None:
    """The error if the engine failed because of the backend's disk, else None.

    `errors` is its standard error or its event log. Deletes the drafts of the engine's own locks, so that the next run
    finds none.
    """
    reasons = list(_NO_WRITE.finditer(errors))
    if not reasons:
        return None
    # A search in all of an event log would take a minute.
    paths = [_FILE.search(errors, max(0, reason.start() - _LONGEST_PATH), reason.start()) for reason in reasons]
    files = [path[0] if path else "" for path in paths]
    why, file = reasons[0][0], files[0]
    drafts = [file for file in files if _DRAFT.search(file)]
    for draft in drafts:
        with suppress(OSError):  # a read-only disk has none
            Path(draft).unlink()
    problem = f"the backend's disk is full or read-only ({why}: {file or 'the engine names no file'})"
    help_ = "make it writable" if "read-only" in why else "free some space there"
    if drafts:
        return CommandError(f"{problem}; nothing was started. To continue, {help_} and run the command again")
    return CommandError(
        f"{problem}, so the state may lack the last changes. To continue, {help_}; then `.venv/bin/idstack recover "
        f"--stack {stack}` finds what the state lacks, and brings the stack up"
    )
