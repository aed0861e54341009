"""Explains failures of the engine to read or write a state in a storage account's container.

After a failed write the engine crashes with a nil pointer instead of the reason, in gocloud.dev/blob/azureblob
(`writer.open` and `writer.Close`; engine 3.259.0 after a 403).
"""

from __future__ import annotations

import re
from typing import Final

from ops.stack.errors import CommandError

_REFUSED: Final = re.compile(r"[A-Z]+ https://(?P<container>[^/\s]+\.blob\.[^/\s]+/[^/\s?]+)\S*\n-+\nRESPONSE 403")
_CRASHED: Final = re.compile(r"gocloud\.dev/blob/azureblob\.\(\*writer\)\.Close")
# pulumi/pulumi `pkg/backend/diy/lock.go`: before any change.
_AT_THE_LOCK: Final = re.compile(r"backend/diy\.\(\*diyBackend\)\.Lock\(")
_ROLES: Final = (
    "To read a stack requires the role Storage Blob Data Reader on the container, to change one Storage Blob Data "
    "Contributor (docs/guides/pull-requests.md); a new assignment takes effect within ten minutes"
)


def failure(errors: str, stack: str) -> CommandError | None:
    """The error if the engine failed because of the state's container, else None; `errors` is its standard error."""
    if refused := _REFUSED.search(errors):
        return CommandError(
            f"the signed-in identity may not use the container of the state, {refused['container']}. {_ROLES}"
        )
    if _CRASHED.search(errors) is None:
        return None
    problem = (
        "the state could not be written to its container, and the engine crashed without a reason. Either the storage "
        "account cannot be reached, or the signed-in identity may not write there. "
    )
    if _AT_THE_LOCK.search(errors):
        return CommandError(f"{problem}{_ROLES}. Nothing was started: correct that and run the command again")
    return CommandError(
        f"{problem}{_ROLES}. The state may lack the last changes: after the correction `make recover STACK={stack}` "
        "finds them, and brings the stack up"
    )
