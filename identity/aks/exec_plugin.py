"""The credential plugin of kubeconfigs, `token --exec <login>`, without the parser of the command line.

kubectl and Helm start it at each call, and to import typer takes longer than all of this. A stack's kubeconfig starts
it as a module; in the environment of a program of your own it is the whole `idstack` command.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from identity.aks import token_cache, tokens
from identity.aks.exec_credential import ExecRequest, render
from identity.aks.login import Login, without_foreign_variables
from identity.azure.errors import AccessError

# The arguments in a kubeconfig, before those of the login.
EXEC: Final = ("token", "--exec")
# azure-identity and MSAL read it.
_IMDS_VARIABLE: Final = "AZURE_POD_IDENTITY_AUTHORITY_HOST"


def main() -> None:
    """Answer a kubeconfig; an AccessError is printed without a trace, with exit code 1."""
    # The message has what a library logs about a failure.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        if tuple(sys.argv[1:3]) != EXEC or not answer(sys.argv[3:]):
            sys.exit("idstack: only `token --exec` is here; run the others in the checkout of the identity stack")
    except AccessError as error:
        sys.exit(f"idstack: {error}")


def answer(arguments: Sequence[str]) -> bool:
    """Print the ExecCredential for the arguments behind `token --exec`; False if they are not a kubeconfig's.

    The environment of this process keeps only what the login reads. Raises AccessError.
    """
    if (login := Login.of_arguments(arguments)) is None:
        return False
    request = ExecRequest(os.environ)
    cache = token_cache.TokenCache(token_cache.directory())
    clear_environment(login)
    token = tokens.token(login, cache, os.environ, show=prompt(request))
    print(render(request.api_version, token.value, token.renew_at))
    return True


def clear_environment(login: Login) -> None:
    """Remove what would make the sign-in somebody else's."""
    kept = without_foreign_variables(os.environ, login.kind)
    for name in set(os.environ) - set(kept):
        del os.environ[name]
    if login.imds_endpoint is not None:
        os.environ[_IMDS_VARIABLE] = login.imds_endpoint


def prompt(request: ExecRequest) -> Callable[[str], object] | None:
    """A function that prints a prompt; None in CI, without a terminal, or if the client forbids it."""
    is_attended = sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI")
    if not is_attended or request.interactive is False:
        return None
    return lambda message: print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
