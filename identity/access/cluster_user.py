"""How the user of a kubeconfig signs in to an API server: a token, a program that prints one, or a certificate."""

from __future__ import annotations

import base64
import binascii
import json
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from identity.access.errors import AccessError


def token(user: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """The user's token; empty for one who presents a certificate. Raises AccessError.

    `environ` is the environment of the program that prints the token.
    """
    block = user.get("exec")
    if block is None:
        return str(user.get("token") or "")
    command = [block["command"], *(block.get("args") or [])]
    info = {"apiVersion": block["apiVersion"], "kind": "ExecCredential", "spec": {"interactive": False}}
    variables = {each["name"]: each["value"] for each in block.get("env") or ()}
    environment = {**environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise AccessError(
            f"{command[0]} cannot be run ({error.strerror}): it makes the token for the API server. "
            f"{block.get('installHint', '')}".rstrip()
        ) from None
    if done.returncode != 0:
        reported = " ".join(done.stderr.split()).removeprefix("idstack: ")
        raise AccessError(f"{command[0]} got no token for the API server: {reported or f'code {done.returncode}'}")
    try:
        return str(json.loads(done.stdout)["status"]["token"])
    except (ValueError, TypeError, KeyError):
        raise AccessError(f"{command[0]} printed no ExecCredential; is it the right program of that name?") from None


def present_certificate(user: Mapping[str, Any], context: ssl.SSLContext) -> None:
    """Let the connections of `context` present the user's certificate, if there is one; raises AccessError.

    The `ssl` module loads certificates from files only, so inline data lies in a directory of its own for a moment.
    """
    with TemporaryDirectory() as directory:
        certificate = _file(user, "client-certificate", Path(directory))
        key = _file(user, "client-key", Path(directory))
        if certificate is None:
            return
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise AccessError(f"the client certificate of the kubeconfig's user cannot be used: {error}") from None


def _file(user: Mapping[str, Any], field: str, directory: Path) -> Path | None:
    """The file that the user's block names, or one with its inline data; None if there is neither."""
    data = user.get(f"{field}-data")
    if data is None:
        return Path(user[field]) if user.get(field) else None
    file = directory / field
    file.touch(mode=0o600)
    try:
        file.write_bytes(base64.b64decode(data, validate=True))
    except binascii.Error:
        raise AccessError(f"{field}-data of the kubeconfig's user is not base64") from None
    return file
