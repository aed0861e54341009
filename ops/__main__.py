"""`idstack`, the command line of this project."""

from __future__ import annotations

import os
import sys
from typing import Final

# How a kubeconfig starts it.
_EXEC: Final = ["token", "--exec"]


def main() -> None:
    """Run a command; what a person has to fix is printed as one paragraph, exit code 1 (2 for wrong usage)."""
    if sys.argv[1:3] == _EXEC:
        from ops.kept_token import kept_credential

        if (credential := kept_credential(sys.argv[3:], os.environ)) is not None:
            print(credential)
            return

    import logging

    from ops.cli import application
    from ops.stack.errors import CommandError

    # What a library logs about a failure stands in the command's own paragraph.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        application()(prog_name="idstack")
    except CommandError as error:
        print(f"idstack: {error.format_message()}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
