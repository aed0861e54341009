"""`idstack`, the command line of this project."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

# The arguments in a kubeconfig.
_EXEC: Final = ["token", "--exec"]
# The exit code with which typer ends at KeyboardInterrupt.
_INTERRUPTED: Final = 130


def main() -> None:
    """Run a command; a CommandError or AccessError is printed without a trace, with exit code 1 (2 for wrong usage)."""
    if sys.argv[1:3] == _EXEC and (credential := kept_credential(sys.argv[3:], os.environ)) is not None:
        print(credential)
        return

    import gc
    import logging

    # What a command imports lives to its end, and the collector would look through it a hundred times.
    gc.set_threshold(100_000)

    from identity.azure.errors import AccessError
    from ops.cli import application
    from ops.stack.errors import CommandError, printable

    # The command's own message has what a library logs about a failure.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        application()(prog_name="idstack")
    except CommandError as error:
        print(printable(f"idstack: {error}"), file=sys.stderr)
        sys.exit(error.exit_code)
    except AccessError as error:
        print(printable(f"idstack: {error}"), file=sys.stderr)
        sys.exit(1)
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            print("idstack: interrupted; run the command again", file=sys.stderr)
        raise


def kept_credential(arguments: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The ExecCredential for the arguments behind `token --exec`, as a kubeconfig has them, with a cached token.

    kubectl and Helm ask for it at each call, and the import of typer takes longer than all of this. None if the command
    itself has to run: for other arguments, without a cached token, and to report errors.
    """
    from identity.aks import token_cache, tokens
    from identity.aks.exec_credential import ExecRequest, render
    from identity.aks.login import Login, without_strays
    from identity.azure.errors import AccessError

    try:
        if (login := Login.of_arguments(arguments)) is None:
            return None
        request = ExecRequest(environ)
        cache = token_cache.TokenCache(token_cache.directory(environ))
        token = tokens.kept(login, cache, without_strays(environ, login.kind))
    except AccessError:
        return None
    return None if token is None else render(request.api_version, token.value, token.renew_at)


if __name__ == "__main__":
    main()
