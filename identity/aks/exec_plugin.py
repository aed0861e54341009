"""The credential plugin of kubeconfigs, `token --exec <login>`, without the parser of the command line.

kubectl and Helm start it at each call, and to import typer takes longer than all of this. A stack's kubeconfig starts
it as a module; in the environment of a program of your own it is the whole `idstack` command.

The protocol is client.authentication.k8s.io, v1 and v1beta1 (kubernetes.io/docs/reference/access-authn-authz/
authentication, client-go credential plugins).
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from identity.aks import tokens
from identity.aks.login import Login, without_foreign_variables
from identity.azure.errors import AccessError, LoginRefusedError
from identity.credentials import rfc3339

# The arguments in a kubeconfig, before those of the login.
EXEC: Final = ("token", "--exec")
# azure-identity and MSAL read it.
_IMDS_VARIABLE: Final = "AZURE_POD_IDENTITY_AUTHORITY_HOST"
_GROUP: Final = "client.authentication.k8s.io"
API_VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_VARIABLE: Final = "KUBERNETES_EXEC_INFO"


class ExecRequest:
    """The client's request in KUBERNETES_EXEC_INFO; raises LoginRefusedError for anything else.

    Attributes:
        api_version: that of the answer: client-go refuses any other than the kubeconfig's.
        interactive: whether a person may be asked; None if the client does not specify it.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.api_version = API_VERSIONS[0]
        self.interactive: bool | None = None
        text = environ.get(_VARIABLE)
        if not text:
            return
        try:
            document = json.loads(text)
            self.api_version = document["apiVersion"]
            self.interactive = (document.get("spec") or {}).get("interactive")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise LoginRefusedError(f"{_VARIABLE} holds no ExecCredential; let kubectl or client-go set it") from None
        if self.api_version not in API_VERSIONS:
            raise LoginRefusedError(
                f"{_VARIABLE} asks for {self.api_version}; offered are {' and '.join(API_VERSIONS)}: "
                "set apiVersion of the kubeconfig's exec block to one of them"
            )


def render(api_version: str, token: str, expires: datetime) -> str:
    """The ExecCredential with a token, one line of JSON."""
    document: dict[str, Any] = {
        "apiVersion": api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
        "status": {"token": token, "expirationTimestamp": rfc3339.render(expires.astimezone(UTC))},
    }
    return json.dumps(document, separators=(",", ":"))


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
    cache = tokens.TokenCache(tokens.directory())
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
