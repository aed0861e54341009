"""What to do after a run that failed for a reason of which the engine's messages name no remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from identity.access.azure_rbac import DENIAL

# pulumi/pulumi `sdk/go/common/resource/plugin/plugin.go`
_ENDED_PLUGIN: Final = re.compile(r"pulumi-resource-([\w-]+)(\.exe)? exited prematurely")
# Storage's 404 for a blob container: azure-native takes others for gone, and fails with this one (COVERAGE.md).
_NO_CONTAINER: Final = "ContainerNotFound"
# The same, `pkg/resource/deploy/step_executor.go`: with `--continue-on-error`, of a component whose registration was
# skipped, as what it depends on has failed.
_SKIPPED: Final = re.compile(r"cannot complete a resource '[^']*::([^':]+)' whose registration isn't pending")


def skipped(lines: Iterable[str]) -> str | None:
    """What the engine's error about resources that a run did not touch means; None if the event log has none."""
    names = dict.fromkeys(found for line in lines for found in _SKIPPED.findall(line))
    if not names:
        return None
    return (
        f"nothing is wrong with {', '.join(names)}: what the engine cannot complete there was not begun, because "
        "something that comes before it failed. It is as it was, and the next run goes on with it"
    )


def hint(lines: Sequence[str], stack: str, command: str) -> str | None:
    """What to do, if the lines of the event log of `pulumi up` or `destroy` have such a reason, else None."""
    if any(DENIAL in line for line in lines):
        return (
            "Azure RBAC decides on the management cluster, and the deployer lacks a role assignment there. "
            f"`.venv/bin/idstack doctor --stage access --stack {stack}` prints the one that is missing; it takes up to "
            "five minutes, then run the command again"
        )
    if any(_NO_CONTAINER in line for line in lines):
        return (
            "the blob container of an OIDC issuer is gone, and azure-native cannot refresh that. The container has the "
            "name of its storage account: `az storage container-rm create --public-access container --resource-group "
            "<group> --storage-account <account> --name <account>` creates it again; then run the command again with "
            "--refresh, which writes the issuer's documents"
        )
    if ended := next(filter(None, map(_ENDED_PLUGIN.search, lines)), None):
        what = f"the plugin {ended[1]} ended while it worked, as if it was killed or had no memory left. "
        if command == "destroy":
            return f"{what}`make down STACK={stack}` again goes on, also if what it deleted is gone by now"
        return f"{what}What it had begun may exist by now: `make recover STACK={stack}` finds it, and goes on"
    return None
