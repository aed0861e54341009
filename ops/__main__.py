"""`idstack`, the command line of this project."""

from __future__ import annotations

import gc
import logging
import sys
from typing import Final

from identity.aks.exec_plugin import EXEC, answer
from identity.azure.errors import AccessError
from identity.checkout import UnreadableCheckoutError
from ops.stack.errors import CommandError, printable

# The exit code with which typer ends at KeyboardInterrupt.
_INTERRUPTED: Final = 130


def main() -> None:
    """Run a command; an error that a user can fix is printed without a trace, with exit code 1 (2: wrong usage)."""
    # What a command imports lives to its end, and the collector would look through it a hundred times.
    gc.set_threshold(100_000)
    # The command's own message has what a library logs about a failure.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        if tuple(sys.argv[1:3]) == EXEC and answer(sys.argv[3:]):
            return
        from ops.cli import application

        application()(prog_name="idstack")
    except (CommandError, AccessError, UnreadableCheckoutError) as error:
        print(printable(f"idstack: {error}"), file=sys.stderr)
        sys.exit(error.exit_code if isinstance(error, CommandError) else 1)
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            print("idstack: interrupted; run the command again", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
