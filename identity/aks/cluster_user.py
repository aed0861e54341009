"""How the user of a kubeconfig signs in to an API server: a token, a program that prints one, or a certificate.

Source: client-go's tools/clientcmd/client_config.go, plugin/pkg/client/auth/exec and transport.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx

from identity.aks.exec_plugin import API_VERSIONS
from identity.azure.errors import AccessError

_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PROXY_SCHEMES: Final = ("http", "https", "socks5")
_LOOPBACK: Final = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class _NamedContext(ssl.SSLContext):
    """Expects another name in the server's certificate than the address's (tls-server-name)."""

    name: str | None = None

    def wrap_socket(self, *arguments: Any, server_hostname: Any = None, **options: Any) -> Any:
        """For direct connections."""
        options["server_hostname"] = self.name or server_hostname
        return super().wrap_socket(*arguments, **options)

    def wrap_bio(self, *arguments: Any, server_hostname: Any = None, **options: Any) -> Any:
        """For connections through a proxy."""
        options["server_hostname"] = self.name or server_hostname
        return super().wrap_bio(*arguments, **options)


def address(cluster: Mapping[str, Any]) -> str:
    """The server's URL; client-go takes http if it has no scheme."""
    server = str(cluster.get("server") or "")
    return server if "://" in server else f"http://{server}"


def client(cluster: Mapping[str, Any], trust: ssl.SSLContext, timeout: float) -> httpx.Client:
    """Requests to the cluster, through its proxy-url or the environment's proxy; raises AccessError."""
    server = address(cluster)
    proxy = cluster.get("proxy-url") or None
    try:
        # Go never uses the environment's proxy for loopback addresses.
        direct: dict[str, None] = {} if proxy else dict.fromkeys(_LOOPBACK)
        return httpx.Client(base_url=server, verify=trust, timeout=timeout, proxy=proxy, mounts=direct)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise AccessError(f"the API server at {server} cannot be asked through a proxy: {error}") from None


def trust_of(cluster: Mapping[str, Any]) -> ssl.SSLContext:
    """The trusted certificates of the server, as in Go's crypto/tls; raises AccessError."""
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.name = cluster.get("tls-server-name") or None
    context.hostname_checks_common_name = False
    # Go trusts every certificate in the file, whatever its issuer.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    authority = content(cluster, "certificate-authority")
    if authority is None:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=b"\n".join(_CERTIFICATE.findall(authority)).decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise AccessError(f"the certificate authority of the kubeconfig cannot be used: {error}") from None
    return context


def unusable_cluster(cluster: Mapping[str, Any]) -> Iterator[str]:
    """What client-go refuses in a cluster (`validateClusterInfo`, `TLSConfigFor`), in words."""
    if not cluster.get("server"):
        yield "it has no server"
    has_authority = [name for name in ("certificate-authority", "certificate-authority-data") if cluster.get(name)]
    if len(has_authority) == 2:
        yield "it has certificate-authority and certificate-authority-data; only one is allowed"
    if has_authority and cluster.get("insecure-skip-tls-verify"):
        yield f"it has {has_authority[0]} and insecure-skip-tls-verify; only one is allowed"
    proxy = cluster.get("proxy-url")
    if proxy and proxy.partition("://")[0] not in _PROXY_SCHEMES:
        yield f"proxy-url has to begin with {'://, '.join(_PROXY_SCHEMES)}://"


# Seconds. A program that asks a person to sign in would wait for a quarter of an hour, and its output is not shown.
_EXEC_TIMEOUT: Final = 90.0
_CLUSTER_FIELDS: Final = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
)
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"


@dataclass(frozen=True)
class ClusterCredential:
    """What a request presents: a token, a certificate with its key (PEM), or both; neither for an anonymous user."""

    token: str = field(default="", repr=False)
    certificate: tuple[bytes, bytes] | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def credential(
    user: Mapping[str, Any],
    cluster: Mapping[str, Any],
    environ: Mapping[str, str],
    timeout: float = _EXEC_TIMEOUT,
) -> ClusterCredential:
    """The user's credential; raises AccessError.

    `environ` is the environment of a program that prints the credential within `timeout` seconds; the program gets the
    `cluster` if its exec block asks for it.
    """
    token, chain, key = _token(user), content(user, "client-certificate"), content(user, "client-key")
    certificate = None if chain is None or key is None else (chain, key)
    headers = [*_impersonation(user)]
    if user.get("username") or user.get("password"):
        login = f"{user.get('username') or ''}:{user.get('password') or ''}"
        headers.append(("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}"))
    elif token:
        headers.append(("Authorization", f"Bearer {token}"))
    elif certificate is None and user.get("exec"):
        token, certificate = _printed(user["exec"], cluster, environ, timeout)
        headers += [("Authorization", f"Bearer {token}")] if token else []
    return ClusterCredential(token, certificate, tuple(headers))


def present(certificate: tuple[bytes, bytes], context: ssl.SSLContext) -> None:
    """Let the connections of `context` present a certificate with its key; raises AccessError.

    The `ssl` module loads certificates from files only, so they are in a temporary directory for a moment.
    """
    with TemporaryDirectory() as directory:
        files = [Path(directory, name) for name in ("certificate", "key")]
        for file, content in zip(files, certificate, strict=True):
            file.touch(mode=0o600)
            file.write_bytes(content)
        try:
            context.load_cert_chain(files[0], files[1], password="")  # without one OpenSSL asks at the terminal
        except (OSError, ssl.SSLError) as error:
            raise AccessError(f"the client certificate of the kubeconfig's user cannot be used: {error}") from None


def content(entry: Mapping[str, Any], name: str) -> bytes | None:
    """The content of `name`-data, or of the file that `name` names; None if there is neither. Raises AccessError."""
    if data := entry.get(f"{name}-data"):
        return base64.b64decode(data)
    return _file(entry[name], name) if entry.get(name) else None


def _file(path: str, name: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise AccessError(f"{name} of the kubeconfig: {path} cannot be read ({error.strerror}); fix the path") from None


def _token(user: Mapping[str, Any]) -> str:
    """The token; a token in a file is newer than the one beside it."""
    token = str(user.get("token") or "")
    if not user.get("tokenFile"):
        return token
    try:
        read = _file(user["tokenFile"], "tokenFile").decode(errors="replace").strip()
    except AccessError:
        if not token:
            raise
        return token
    if not (read or token):
        raise AccessError(f"tokenFile of the kubeconfig: {user['tokenFile']} is empty; put a token there")
    return read or token


def _impersonation(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Headers of client-go's transport/round_trippers.go."""
    for name, member in (("Impersonate-User", "as"), ("Impersonate-Uid", "as-uid")):
        if user.get(member):
            yield name, user[member]
    yield from (("Impersonate-Group", group) for group in user.get("as-groups") or ())
    for key, values in (user.get("as-user-extra") or {}).items():
        yield from ((f"Impersonate-Extra-{key}", value) for value in values)


def _printed(
    block: Mapping[str, Any], cluster: Mapping[str, Any], environ: Mapping[str, str], timeout: float
) -> tuple[str, tuple[bytes, bytes] | None]:
    """Token and certificate that the program prints; raises AccessError."""
    program = block["command"]
    if block.get("interactiveMode") == "Always":
        raise AccessError(f"{program} wants a terminal (interactiveMode: Always), and there is none here")
    spec: dict[str, Any] = {"interactive": False}
    if block.get("provideClusterInfo"):
        spec["cluster"] = _cluster_info(cluster)
    info = {"apiVersion": block["apiVersion"], "kind": "ExecCredential", "spec": spec}
    variables = {variable["name"]: variable.get("value") or "" for variable in block.get("env") or ()}
    environment = {**environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    output = _run([program, *(block.get("args") or [])], environment, block.get("installHint") or "", timeout)
    try:
        answer = json.loads(output)
        status = answer["status"]
        token = status.get("token") or ""
        pair = (status.get("clientCertificateData") or "", status.get("clientKeyData") or "")
        version = answer["apiVersion"]
        if not all(isinstance(text, str) for text in (token, *pair)):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise AccessError(f"{program} printed no ExecCredential; is it the right program of that name?") from None
    if version != block["apiVersion"]:
        raise AccessError(f"{program} answers in {version}; the exec block asks for {block['apiVersion']}")
    if bool(pair[0]) != bool(pair[1]):
        raise AccessError(f"{program} printed a certificate or its key alone; both are needed")
    if not token and not pair[0]:
        raise AccessError(f"{program} printed neither a token nor a certificate with its key")
    return token, (pair[0].encode(), pair[1].encode()) if pair[0] else None


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster as KUBERNETES_EXEC_INFO has it, with the content of the authority's file."""
    info = {name: cluster[name] for name in _CLUSTER_FIELDS if cluster.get(name)}
    if (authority := content(cluster, "certificate-authority")) is not None:
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    extensions = {entry.get("name"): entry.get("extension") for entry in cluster.get("extensions") or ()}
    return info | ({"config": extensions[_EXEC_EXTENSION]} if _EXEC_EXTENSION in extensions else {})


def _run(command: list[str], environment: Mapping[str, str], hint: str, timeout: float) -> str:
    """The output of the program; raises AccessError with its error output."""
    try:
        started = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AccessError(
            f"{command[0]} cannot be run ({reason}): it makes the token for the API server. {hint}".rstrip()
        ) from None
    with started:
        try:
            output, errors = started.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            _, errors = started.communicate()
            raise AccessError(
                f"{command[0]} got no token for the API server within {timeout:g} seconds: {_reported(errors)}. Where "
                "nobody can sign in, `.venv/bin/idstack kubeconfig` writes one that needs nobody"
            ) from None
    if started.returncode != 0:
        reported = _reported(errors) or f"code {started.returncode}"
        raise AccessError(f"{command[0]} got no token for the API server: {reported}")
    return output


def _reported(errors: str) -> str:
    return " ".join(errors.split()).removeprefix("idstack: ").rstrip(".")


def unusable_user(user: Mapping[str, Any]) -> Iterator[str]:
    """What client-go refuses in a user (`validateAuthInfo`), in words."""
    if user.get("token") and (user.get("username") or user.get("password")):
        yield "it has a token and a password; only one is allowed"
    if user.get("client-certificate") or user.get("client-certificate-data"):
        if not user.get("client-key") and not user.get("client-key-data"):
            yield "it has a client certificate without its key (client-key or client-key-data)"
        for name in ("client-certificate", "client-key"):
            if user.get(name) and user.get(f"{name}-data"):
                yield f"it has {name} and {name}-data; only one is allowed"
    if any(user.get(name) for name in ("as-uid", "as-groups", "as-user-extra")) and not user.get("as"):
        yield "it has as-uid, as-groups or as-user-extra without as"
    block, provider = user.get("exec"), user.get("auth-provider")
    if provider is not None:
        yield (
            f'it signs in by the auth-provider "{provider.get("name") or ""}", which kubectl does not have any more or '
            "this command does not know; `.venv/bin/idstack kubeconfig --from` converts the one of Azure"
        )
    if block is not None:
        yield from _unusable_exec(block)


def _unusable_exec(block: Mapping[str, Any]) -> Iterator[str]:
    if not block.get("command"):
        yield "its exec block has no command"
    version = block.get("apiVersion") or ""
    if version not in API_VERSIONS:
        yield f'apiVersion of its exec block is "{version}"; accepted are {" and ".join(API_VERSIONS)}'
    mode = block.get("interactiveMode") or ("" if version == API_VERSIONS[0] else "IfAvailable")
    if mode not in ("Never", "IfAvailable", "Always"):
        yield f'interactiveMode of its exec block is "{mode}"; accepted are Never, IfAvailable and Always'
    if not all((variable or {}).get("name") for variable in block.get("env") or ()):
        yield "a variable of its exec block has no name"
