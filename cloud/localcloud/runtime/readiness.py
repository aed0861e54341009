"""Waits until a process of the local cloud is ready."""

from __future__ import annotations

import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final, TypeAlias

import httpx

from localcloud.apiserver.commands import API_SERVER, CONTROLLER_MANAGER
from localcloud.core import processes
from localcloud.core.clouds import LocalEnvironment
from localcloud.core.cluster import ClusterKind
from localcloud.core.state_directory import StateDirectory
from localcloud.kubernetes.kubeconfig import connection

DAEMON: Final = "daemon"
# Seconds. A cold start takes about two, with kube-apiserver four; on a heavily loaded machine it took over sixty.
# A long limit costs nothing: the end of a process is noticed at once.
_WITHIN: Final = 180.0
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 0.5
_LOG_LINES: Final = 15

Spawned: TypeAlias = "subprocess.Popen[bytes] | None"
"""The process if this very call started it, so that its end is noticed."""

Wait: TypeAlias = Callable[[StateDirectory, Spawned], None]
"""Waits until a process is ready; raises `NotStartedError`."""


class NotStartedError(RuntimeError):
    """A process ended before it answered, or never answered."""


def services(state: StateDirectory, spawned: Spawned) -> None:
    """Wait until every service of the daemon answers, if only with a refusal; raises `NotStartedError`.

    While faults are held, it is enough that the daemon runs, which listens before it records itself.
    """
    waiting: dict[str, str] = {}
    for _ in _attempts(state, DAEMON, spawned):
        if processes.alive(state.pids, DAEMON):
            if state.held_faults_file.exists():
                return
            environment = LocalEnvironment.from_file(state.environment_file)
            waiting = waiting or _addresses(environment)
            with httpx.Client(verify=ssl.create_default_context(cafile=environment.ca_file), timeout=2) as client:
                waiting = {name: url for name, url in waiting.items() if not _answers(client, url)}
            if not waiting:
                return
    raise NotStartedError(f"{', '.join(waiting) or DAEMON} did not answer within {_WITHIN:.0f} s: {state.log(DAEMON)}")


def api_server(token: str) -> Wait:
    """Wait until kube-apiserver is ready and knows Entra ID's signing keys, which `/readyz` does not check.

    `token` is any access token of Entra ID that it has to accept.
    """

    def wait(state: StateDirectory, spawned: Spawned) -> None:
        _wait_until_found(state, API_SERVER, spawned, "/readyz")
        _wait_until_found(state, API_SERVER, spawned, "/api", token)

    return wait


def service_accounts(state: StateDirectory, spawned: Spawned) -> None:
    """Wait until the controllers have created the default service account; raises `NotStartedError`."""
    _wait_until_found(state, CONTROLLER_MANAGER, spawned, "/api/v1/namespaces/default/serviceaccounts/default")


def recorded(name: str) -> Wait:
    """Wait until the process has recorded itself; raises `NotStartedError`."""

    def wait(state: StateDirectory, spawned: Spawned) -> None:
        for _ in _attempts(state, name, spawned):
            if processes.alive(state.pids, name):
                return
        raise NotStartedError(f"{name} did not start within {_WITHIN:.0f} s: {state.log(name)}")

    return wait


def _wait_until_found(state: StateDirectory, name: str, spawned: Spawned, path: str, token: str | None = None) -> None:
    """Wait until a GET of `path` succeeds, with `token` or as the administrator; raises `NotStartedError`."""
    to = connection(str(state.administrator_kubeconfig))
    headers = {"Authorization": f"Bearer {token}"} if token else to.headers
    with httpx.Client(
        base_url=to.server, headers=headers, verify=to.verification(), timeout=2, trust_env=False
    ) as client:
        for _ in _attempts(state, name, spawned):
            try:
                if client.get(path).status_code == HTTPStatus.OK:
                    return
            except httpx.TransportError:
                continue
    raise NotStartedError(f"{name} was not ready within {_WITHIN:.0f} s: {state.log(name)}")


def _attempts(state: StateDirectory, name: str, spawned: Spawned) -> Iterator[None]:
    """Yields with growing pauses until the time limit; raises `NotStartedError` when the process ends meanwhile."""
    deadline = time.monotonic() + _WITHIN
    for pause in processes.growing_pauses(_FIRST_PAUSE, _LONGEST_PAUSE):
        if time.monotonic() >= deadline:
            return
        if spawned is not None and spawned.poll() is not None:
            tail = state.log(name).read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise NotStartedError("\n".join([f"{name} ended with status {spawned.returncode}:", *tail]))
        yield
        time.sleep(pause)


def _addresses(environment: LocalEnvironment) -> dict[str, str]:
    addresses = {
        "entra": f"{environment.authority_host}{environment.tenant_id}/v2.0/.well-known/openid-configuration",
        "arm": f"{environment.arm_endpoint}/subscriptions?api-version=2022-12-01",
        "graph": f"{environment.graph_endpoint}/v1.0/applications",
        "keyvault": f"{environment.key_vault_endpoint}/secrets?api-version=7.4",
        "imds": f"{environment.imds_endpoint}/metadata/identity/oauth2/token",
    }
    if environment.cluster == ClusterKind.BUILT_IN:
        addresses["kubernetes"] = f"{environment.kubernetes_endpoint}/readyz"
    return addresses


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code < httpx.codes.INTERNAL_SERVER_ERROR
    except httpx.TransportError:
        return False
