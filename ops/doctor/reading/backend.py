"""The backend of a stack: its locks, and whether its secrets can be decrypted.

A backend of files keeps a lock as `.pulumi/locks/organization/<project>/<stack>/<id>.json` until the engine that wrote
it deletes it (pulumi/pulumi v3.259 `pkg/backend/diy/lock.go`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import yaml

from identity.credentials import rfc3339
from ops.doctor.model.seen import Unread
from ops.doctor.model.world import SeenLock
from ops.stack import lock
from ops.stack.engine import Engine
from ops.stack.errors import CommandError

_LOCKS: Final = ".pulumi/locks/organization"
# Of a key service that refuses whoever runs this.
_REFUSED: Final = ("Forbidden", "AuthorizationFailed", "StatusCode=403", "RESPONSE 403")


def read_locks(engine: Engine) -> tuple[SeenLock, ...] | Unread:
    """The locks on the stack, as far as its backend shows them."""
    try:
        backend = engine.backend()
    except CommandError as error:
        return Unread(str(error))
    if not backend.startswith("file://"):
        return Unread(
            f"the locks of {backend.partition('?')[0]} are not read here; `up` names who holds one and changes nothing"
        )
    project = yaml.safe_load((engine.root / "Pulumi.yaml").read_text(encoding="utf-8"))["name"]
    address = urlsplit(backend)
    root = Path(unquote(f"{address.netloc}{address.path}")).expanduser()
    folder = root / _LOCKS / project / engine.stack.rpartition("/")[2]
    return tuple(_locks(folder, is_local=engine.is_local))


def _locks(folder: Path, *, is_local: bool) -> Iterator[SeenLock]:
    for file in sorted(folder.glob("*.json")):
        try:
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8") or "{}")
            written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        except FileNotFoundError:
            continue  # its engine has ended meanwhile
        except ValueError:
            found = {}
        owner = lock.Owner(
            user=str(found.get("username", "somebody")),
            host=str(found.get("hostname", "a machine that it does not name")),
            pid=int(found.get("pid", 0)),
            since=str(found.get("timestamp", "")),
        )
        is_seen = is_local or owner.is_of_this_host
        yield SeenLock(
            owner=f"{owner.user}@{owner.host} (pid {owner.pid})",
            since=_date(owner.since) or written,
            runs=lock.runs(owner.pid) if is_seen and owner.pid else None,
        )


def _date(text: str) -> datetime | None:
    try:
        return rfc3339.parse(text)
    except ValueError:
        return None


def read_decryption(engine: Engine) -> str | Unread | None:
    """Why the stack's secrets cannot be decrypted, None if they can."""
    refusal = engine.decryption_refusal()
    if refusal is not None and any(each in refusal for each in _REFUSED):
        return Unread(refusal)
    return refusal
