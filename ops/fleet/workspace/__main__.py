"""The image's `pulumi`, which the operator's agent calls: the engine as `idstack` runs it.

The agent first installs a project's packages; here they are in the image already, by checksum, and nothing is
installed. The agent has no option for policies; `up` and `preview` get them as those of `idstack` do.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from ops.stack.environment import policy_pack, variables
from ops.stack.errors import CommandError

# `ops.stack` tells stacks of the local cloud by name; none of them is in a workspace.
_STACK: Final = "workspace"
# With it the engine knows `--event-log`, by which the agent follows a run (pulumi/pulumi `sdk/go/auto/stack.go`). It
# reveals nothing, unlike the others of its prefix, so it is kept here and nowhere else.
_EVENT_LOG: Final = "PULUMI_DEBUG_COMMANDS"
# Each run has a new workspace, whose stack's file has the configuration alone. Without it the engine would ask for a
# passphrase there instead of the key that encrypts the state (pulumi/pulumi `pkg/cmd/pulumi/stack/secrets.go`).
_STATES_KEY: Final = {"PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true"}


def command(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The engine's command line and environment for the agent's arguments; raises CommandError without an engine."""
    environment = variables(_STACK, environ) | _STATES_KEY
    environment |= {name: value for name, value in environ.items() if name == _EVENT_LOG}
    engine = shutil.which("pulumi", path=environment["PATH"])
    if engine is None:
        raise CommandError("the image has no engine: build it with fleet/workspace/Containerfile")
    policies = policy_pack(_STACK, wanted=True) if _verb(arguments) in ("up", "preview") else []
    return [engine, *arguments, *policies], environment


def _verb(arguments: Sequence[str]) -> str:
    """The engine's command: the agent's library puts options without a value before it (`--non-interactive`)."""
    return next((argument for argument in arguments if not argument.startswith("-")), "")


def main() -> None:
    arguments = sys.argv[1:]
    if _verb(arguments) == "install":
        return
    try:
        line, environment = command(arguments, os.environ)
    except CommandError as error:
        print(f"idstack: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    os.execve(line[0], line, environment)  # noqa: S606 - there is no shell


if __name__ == "__main__":
    main()
