"""The backend of a stack: its locks, and whether its secrets can be decrypted.

A file or blob backend keeps a lock as `.pulumi/locks/organization/<project>/<stack>/<id>.json` until the engine
that wrote it deletes it (pulumi/pulumi v3.259 `pkg/backend/diy/lock.go`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from identity.azure.client import AzureClient
from identity.azure.errors import AccessError
from identity.credentials import rfc3339
from ops.stack import disk, lock
from ops.stack.engine import Engine
from ops.stack.environment import project_name
from ops.stack.errors import CommandError
from ops.stack.state_file import StateDamagedError
from ops.world.seen import Unread
from ops.world.stack_world import SeenLock, SeenRun

_LOCKS: Final = "locks/organization"
# In the errors of a key service that refuses the caller.
_REFUSED: Final = ("Forbidden", "AuthorizationFailed", "StatusCode=403", "RESPONSE 403")


Azure: TypeAlias = Callable[[], AbstractContextManager[AzureClient]]


def read_locks(engine: Engine, azure: Azure) -> tuple[SeenLock, ...] | Unread:
    """The locks on the stack, if its backend shows them; `azure` reads those in a storage account."""
    try:
        backend = engine.backend()
        folder = f"{_LOCKS}/{project_name(engine.root)}/{engine.stack}"
        if (directory := disk.directory(backend)) is not None:
            locks = dict(_files(directory / folder))
        elif (address := urlsplit(backend)).scheme == "azblob":
            locks = _blobs(address, f".pulumi/{folder}", engine.environment, azure)
        else:
            return Unread(
                f"the locks of {backend.partition('?')[0]} cannot be read; `up` names the owner of a lock and "
                "changes nothing"
            )
    except (AccessError, CommandError) as error:
        return Unread.because(error)
    return tuple(_lock(text, written, engine) for text, written in locks.items())


def _files(folder: Path) -> Iterator[tuple[str, datetime]]:
    """Content and time of each lock file."""
    for file in sorted(folder.glob("*.json*")):  # the draft of a full disk locks the stack as well
        with suppress(FileNotFoundError):  # its engine has ended
            yield file.read_text(encoding="utf-8"), datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _blobs(address: SplitResult, folder: str, environment: Mapping[str, str], azure: Azure) -> dict[str, datetime]:
    """Content of each lock file in the container of an address of gocloud.dev/blob/azureblob."""
    query = parse_qs(address.query)
    account = query.get("storage_account", [environment.get("AZURE_STORAGE_ACCOUNT", "")])[0]
    if not account:
        raise CommandError("the backend's address names no storage_account, and AZURE_STORAGE_ACCOUNT is not set")
    prefix = query.get("prefix", [""])[0]
    with azure() as clients:
        container = f"https://{account}.blob.{clients.cloud.storage_suffix}/{address.netloc}"
        names = clients.blob_names(container, f"{prefix}{folder}/")
        now = datetime.now(UTC)
        return {
            clients.blob(f"{container}/{quote(name)}").decode(): now for name in sorted(names) if name.endswith(".json")
        }


def _lock(text: str, written: datetime, engine: Engine) -> SeenLock:
    try:
        document: dict[str, Any] = json.loads(text)
    except ValueError:
        return SeenLock(owner="an engine that could not write its lock", since=written, runs=False)
    owner = lock.Owner(
        user=str(document.get("username", "an unknown user")),
        host=str(document.get("hostname", "an unknown machine")),
        pid=int(document.get("pid", 0)),
        since=str(document.get("timestamp", "")),
    )
    return SeenLock(
        owner=f"{owner.user}@{owner.host} (pid {owner.pid})",
        since=_date(owner.since) or written,
        runs=lock.owner_runs(owner, engine.engines, is_local=engine.is_local) if owner.pid else None,
    )


def _date(text: str) -> datetime | None:
    try:
        return rfc3339.parse(text)
    except ValueError:
        return None


def read_last_run(engine: Engine) -> SeenRun | Unread | None:
    """The last `up` or `destroy`; None before the first one."""
    try:
        update = engine.last_update()
    except CommandError as error:
        return Unread.because(error)
    if update is None:
        return None
    # A run that failed before any change leaves the stack as it was.
    has_changed = any(
        count for operation, count in (update.get("resourceChanges") or {}).items() if operation != "same"
    )
    return SeenRun(
        kind=update["kind"], started=update["startTime"], has_failed=update["result"] == "failed" and has_changed
    )


def read_decryption(engine: Engine) -> str | Unread | None:
    """Why the stack's secrets cannot be decrypted, None if they can."""
    try:
        refusal = engine.decryption_refusal()
    except StateDamagedError as error:
        return Unread.because(error)
    if refusal is not None and any(word in refusal for word in _REFUSED):
        return Unread(refusal)
    return refusal
