"""Credential plugins as client-go runs them: on the first request, again when the token is expired or was refused.

Source: client-go `plugin/pkg/client/auth/exec/exec.go`. As there, the request that was answered 401 fails, and what the
plugin wrote to standard error does not reach the caller.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import httpx

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
