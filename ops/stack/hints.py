"""Remedies for failed runs that the engine's messages do not name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from identity.aks.azure_rbac import DENIAL

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
