"""A state in a storage account's container that the engine may not read, or could not write.

A write that fails ends the engine with a nil pointer in place of the reason: gocloud.dev/blob/azureblob closes a pipe
that it has already forgotten (`writer.open` and `writer.Close`; seen with engine 3.259.0 and a 403).
"""

from __future__ import annotations

import re
from typing import Final

from ops.stack.errors import CommandError

_REFUSED: Final = re.compile(r"[A-Z]+ https://(?P<container>[^/\s]+\.blob\.[^/\s]+/[^/\s?]+)\S*\n-+\nRESPONSE 403")
_CRASHED: Final = re.compile(r"gocloud\.dev/blob/azureblob\.\(\*writer\)\.Close")
# pulumi/pulumi `pkg/backend/diy/lock.go`: before anything is done.
_AT_THE_LOCK: Final = re.compile(r"backend/diy\.\(\*diyBackend\)\.Lock\(")
_ROLES: Final = (
    "Reading takes the role Storage Blob Data Reader on the container, changing a stack Storage Blob Data Contributor "
    "(docs/guides/pull-requests.md); a new assignment takes up to ten minutes"
)


def failure(errors: str, stack: str) -> CommandError | None:
    """What to say if the container of the state is why the engine failed, else None; `errors` is its standard error."""
    if refused := _REFUSED.search(errors):
        return CommandError(f"who runs this may not use the container of the state, {refused['container']}. {_ROLES}")
    if _CRASHED.search(errors) is None:
        return None
    what = (
        "the container of the state took no write, and the engine crashed over it: its library for storage accounts "
        "forgets the reason. Either the account cannot be reached, or who runs this may not write there. "
    )
    if _AT_THE_LOCK.search(errors):
        return CommandError(f"{what}{_ROLES}. Nothing has begun: run the command again then")
    return CommandError(
        f"{what}{_ROLES}. The state may lack what was done last: `make recover STACK={stack}` finds it then, and "
        "brings the stack up"
    )
