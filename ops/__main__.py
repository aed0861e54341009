"""`idstack`, the command line of this project."""

from __future__ import annotations

import os
import sys
from typing import Final

# The arguments in a kubeconfig.
_EXEC: Final = ["token", "--exec"]


def main() -> None:
    """Run a command; a CommandError or AccessError is printed without a trace, with exit code 1 (2 for wrong usage)."""
    if sys.argv[1:3] == _EXEC:
        from ops.kept_token import kept_credential

        if (credential := kept_credential(sys.argv[3:], os.environ)) is not None:
            print(credential)
            return

    import gc
    import logging

    # What a command imports lives to its end, and the collector would look through it a hundred times.
    gc.set_threshold(100_000)

    from identity.azure.errors import AccessError
    from ops.cli import application
    from ops.stack.errors import CommandError

    # The command's own message has what a library logs about a failure.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        application()(prog_name="idstack")
    except CommandError as error:
        print(f"idstack: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except AccessError as error:
        print(f"idstack: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
