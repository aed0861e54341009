"""What a command costs before it does anything: a token from the cache, and the help."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from identity.aks.login import Login
from identity.aks.sign_in import token_source
from identity.aks.token_cache import CACHE_VARIABLE, Token, TokenCache, key_of
from identity.credentials.rfc3339 import utc_now
from identity.login_kinds import LoginKind
from tools.bench.figures import Figure, Limit
from tools.bench.measure import bare_interpreter, in_turn, run

_ROUNDS: Final = 10
_ROOT: Final = Path(__file__).parents[2]
# A bare interpreter takes 13 ms on a machine without other work: 0.15 s for a token, 0.4 s for the help.
_TOKEN: Final = 11
_HELP: Final = 30


def commands() -> list[Figure]:
    """CPU of `idstack token --exec` from its cache, and of `idstack --help`, against a bare interpreter."""
    with TemporaryDirectory(prefix="bench-") as directory:
        certificate = Path(directory, "deployer.pem")
        certificate.write_text("only its digest counts")
        login = Login(kind=LoginKind.CERTIFICATE, certificate=certificate)
        cache = Path(directory, "tokens")
        _keep(login, cache)
        token, help_, bare = in_turn(
            _ROUNDS,
            lambda: _cpu(["-m", "ops", "token", "--exec", *login.arguments()], cache),
            lambda: _cpu(["-m", "ops", "--help"], cache),
            bare_interpreter,
        )
    return [
        Figure(
            name=name,
            unit="s",
            ours=min(ours),
            peer=min(bare),
            peer_name="a bare interpreter",
            limit=Limit("at most", most),
            note=f"CPU, the best of {_ROUNDS} in turn",
        )
        for name, ours, most in (("a token from the cache", token, _TOKEN), ("idstack --help", help_, _HELP))
    ]


def _keep(login: Login, directory: Path) -> None:
    fingerprint = token_source(login, {}, utc_now).fingerprint
    assert fingerprint is not None
    token = Token.issued("kept", now=utc_now(), expires_on=int(utc_now().timestamp()) + 3600)
    TokenCache(directory).token(key_of(login, fingerprint), utc_now, lambda: token)


def _cpu(arguments: Sequence[str], cache: Path) -> float:
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    return run([sys.executable, *arguments], directory=_ROOT, environment=environment).cpu
