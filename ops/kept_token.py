"""`idstack token --exec` while its token is kept, without the parser of the command line.

kubectl and Helm start it for each call, and typer takes longer to import than all that is needed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from identity.access import token_cache, tokens
from identity.access.errors import AccessError
from identity.access.exec_credential import ExecRequest, render
from identity.access.login import Login, without_strays
from identity.access.token_cache import TokenCache


def kept_credential(arguments: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The ExecCredential for the arguments behind `token --exec`, as a kubeconfig has them.

    None if the command itself has to go on: it has another form, asks for a new token, or says what is wrong.
    """
    try:
        login = Login.of_arguments(arguments)
        if login is None:
            return None
        request = ExecRequest(environ)
        found = tokens.kept(login, TokenCache(token_cache.directory(environ)), without_strays(environ, login.kind))
    except AccessError:
        return None
    return None if found is None else render(request.api_version, found.value, found.renew_at)
