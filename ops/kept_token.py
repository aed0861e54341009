"""`idstack token --exec` with a cached token, without the parser of the command line.

kubectl and Helm start it for each call, and the import of typer takes longer than all of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from identity.aks import token_cache, tokens
from identity.aks.exec_credential import ExecRequest, render
from identity.aks.login import Login, without_strays
from identity.aks.token_cache import TokenCache
from identity.azure.errors import AccessError


def kept_credential(arguments: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The ExecCredential for the arguments behind `token --exec`, as a kubeconfig has them.

    None if the command itself has to run: for other arguments, without a cached token, and to report errors.
    """
    try:
        login = Login.of_arguments(arguments)
        if login is None:
            return None
        request = ExecRequest(environ)
        token = tokens.kept(login, TokenCache(token_cache.directory(environ)), without_strays(environ, login.kind))
    except AccessError:
        return None
    return None if token is None else render(request.api_version, token.value, token.renew_at)
