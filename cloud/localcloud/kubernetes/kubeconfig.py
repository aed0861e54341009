"""Server, authority and credential of one context of a kubeconfig.

Tokens, client certificates and exec plugins are read; an auth-provider is refused, as client-go does since 0.26.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from localcloud.core.yaml_text import load_as_go

# Credential plugins as client-go runs them: on the first request, again when the token is expired or was refused.
#
# Source: client-go `plugin/pkg/client/auth/exec/exec.go`. As there, the request that was answered 401 fails, and what
# the plugin wrote to standard error does not reach the caller.

_SUPPORTED: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecPlugin(httpx.Auth):
    """A program that issues tokens, as an authentication of httpx."""

    def __init__(self, command: str, arguments: list[str], variables: Mapping[str, str], api_version: str) -> None:
        self._command = command
        self._arguments = arguments
        self._variables = variables
        self._api_version = api_version
        self._hint = ""
        self._lock = threading.Lock()
        self._token: str | None = None
        self._expires: datetime | None = None

    @classmethod
    def of(cls, block: Mapping[str, Any]) -> ExecPlugin:
        """The plugin of a kubeconfig's `exec` block; raises ValueError where client-go refuses the block."""
        api_version = block.get("apiVersion", "")
        if api_version not in _SUPPORTED:
            raise ValueError(f'exec plugin: invalid apiVersion "{api_version}"')
        if api_version == _SUPPORTED[0] and not block.get("interactiveMode"):
            raise ValueError(f"exec plugin: interactiveMode must be specified for {api_version}")
        variables = {variable["name"]: variable["value"] for variable in block.get("env") or []}
        plugin = cls(block["command"], list(block.get("args") or []), variables, api_version)
        plugin._hint = block.get("installHint") or ""
        return plugin

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """One request with the token."""
        token = self._current()
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            with self._lock:
                if self._token == token:
                    self._token = None

    def _current(self) -> str:
        with self._lock:
            if self._token is None or (self._expires is not None and self._expires <= datetime.now(UTC)):
                self._run()
            assert self._token is not None
            return self._token

    def _run(self) -> None:
        info = {"apiVersion": self._api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {**os.environ, **self._variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            done = subprocess.run(
                [self._command, *self._arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError:
            self._fail(f"executable {self._command} not found\n\n{self._hint}")
        if done.returncode != 0:
            self._fail(f"executable {self._command} failed with exit code {done.returncode}")
        try:
            answer = json.loads(done.stdout)
            status, version = answer["status"], answer["apiVersion"]
            self._token = status["token"]
        except (ValueError, TypeError, KeyError):
            self._fail("decoding stdout: no ExecCredential with a token")
        if version != self._api_version:
            self._fail(f"plugin returned version {version}, expected {self._api_version}")
        expires = status.get("expirationTimestamp")
        self._expires = datetime.fromisoformat(expires) if expires else None

    def _fail(self, reason: str) -> None:
        raise httpx.RequestError(f"getting credentials: exec: {reason}")


class InvalidKubeconfigError(ValueError):
    """A kubeconfig without a usable cluster or user; the message names what is missing."""


@dataclass(frozen=True, repr=False)
class Connection:
    """One cluster as one user. `repr` shows the server only.

    Attributes:
        server: URL without a trailing slash.
        namespace: the context's namespace, `default` if it names none.
        ca: PEM of the authority that the server's certificate is checked with, None for the system's authorities.
        token: bearer token, None if the user signs in with a certificate.
        client_certificate, client_key: PEM, or None.
        plugin: the program that makes the bearer token, if the user signs in by one.
    """

    server: str
    namespace: str = "default"
    ca: str | None = None
    token: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    plugin: ExecPlugin | None = None

    def __repr__(self) -> str:
        return f"Connection({self.server})"

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request; `ExecPlugin` adds a plugin's token."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def client(self, *, timeout: float, headers: Mapping[str, str] | None = None) -> httpx.Client:
        """A client of the server, signed in unless `headers` replace the user's; `timeout` in seconds. Close it."""
        return httpx.Client(
            base_url=self.server,
            headers=self.headers if headers is None else headers,
            auth=self.plugin,
            verify=self.verification(),
            timeout=timeout,
            limits=httpx.Limits(max_connections=None),
            trust_env=False,
        )

    def verification(self) -> ssl.SSLContext | bool:
        """The value of httpx's `verify`."""
        if not self.server.startswith("https:"):
            return True
        context = ssl.create_default_context(cadata=self.ca)
        if self.client_certificate and self.client_key:
            # The ssl module reads certificates from files only; this one exists during the call.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
                pair.write(f"{self.client_certificate}\n{self.client_key}\n")
                pair.flush()
                context.load_cert_chain(pair.name)
        return context


def servers(kubeconfig: str) -> frozenset[str]:
    """Every server that a kubeconfig (YAML or JSON) names."""
    return frozenset(cluster["server"].rstrip("/") for cluster in _named(_parsed(kubeconfig), "clusters").values())


def connection(kubeconfig: str, context: str | None = None) -> Connection:
    """The connection of `context`, or of the current one.

    `kubeconfig` is the content of a kubeconfig, YAML or JSON, or the path of one. Raises InvalidKubeconfigError, also
    for one that lacks the context, its cluster or a usable user.
    """
    document = _parsed(text_of(kubeconfig))
    name = context or document.get("current-context")
    if not name:
        raise InvalidKubeconfigError("the kubeconfig has no current-context, and no context is named")
    chosen = _entry(_named(document, "contexts"), name, "context")
    cluster = _entry(_named(document, "clusters"), chosen.get("cluster"), "cluster")
    user = _entry(_named(document, "users"), chosen.get("user"), "user")
    if "server" not in cluster:
        raise InvalidKubeconfigError(f'cluster "{chosen["cluster"]}" of the kubeconfig has no server')
    if "auth-provider" in user:
        name = (user["auth-provider"] or {}).get("name")
        raise InvalidKubeconfigError(f"The {name} auth plugin has been removed.")
    return Connection(
        server=cluster["server"].rstrip("/"),
        namespace=chosen.get("namespace") or "default",
        ca=_content(cluster, "certificate-authority"),
        token=user.get("token") or _content(user, "tokenFile"),
        client_certificate=_content(user, "client-certificate"),
        client_key=_content(user, "client-key"),
        plugin=ExecPlugin.of(user["exec"]) if user.get("exec") else None,
    )


def with_one_context(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig for one cluster and one user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": dict(cluster)}],
        "users": [{"name": "local", "user": dict(user)}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
        "current-context": "local",
    }


def cluster_entry(kubeconfig: str, context: str | None = None) -> Mapping[str, Any]:
    """The kubeconfig's entry for the cluster of `context`, or of the current one; raises InvalidKubeconfigError."""
    document = _parsed(text_of(kubeconfig))
    chosen = _entry(_named(document, "contexts"), context or document.get("current-context"), "context")
    return _entry(_named(document, "clusters"), chosen.get("cluster"), "cluster")


def text_of(kubeconfig: str) -> str:
    """A kubeconfig's content, from content or from a path; as in the real provider, an existing file is a path."""
    if "\n" not in kubeconfig and not kubeconfig.lstrip().startswith("{"):
        path = Path(kubeconfig).expanduser()
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return kubeconfig


def _parsed(text: str) -> dict[str, Any]:
    try:
        document = load_as_go(text)
    except yaml.YAMLError as error:
        raise InvalidKubeconfigError(f"the kubeconfig is not YAML: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("clusters"), list):
        raise InvalidKubeconfigError("the kubeconfig is neither a kubeconfig nor the path of an existing file")
    return document


def _named(document: Mapping[str, Any], section: str) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry.get(section.removesuffix("s")) or {} for entry in document.get(section) or []}


def _entry(entries: Mapping[str, dict[str, Any]], name: str | None, what: str) -> dict[str, Any]:
    if name is None or name not in entries:
        raise InvalidKubeconfigError(
            f'the kubeconfig has no {what} "{name}"; it has {", ".join(sorted(entries)) or "none"}'
        )
    return entries[name]


def _content(entry: Mapping[str, Any], field: str) -> str | None:
    if data := entry.get(f"{field}-data"):
        return base64.b64decode(data).decode()
    if path := entry.get(field):
        return Path(path).expanduser().read_text(encoding="utf-8").strip()
    return None
