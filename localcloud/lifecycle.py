"""Starting and stopping the local cloud's two daemons from outside."""

from __future__ import annotations

import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import yaml

from identity.clouds import LocalEnvironment
from localcloud import processes
from localcloud.statedir import StateDirectory

DAEMON = "daemon"
KUBELET = "kubelet"
_GRACE = {KUBELET: 45.0, DAEMON: 10.0}  # seconds; a pod's own grace period is 30
_COMMANDS = {DAEMON: "run", KUBELET: "kubelet"}
_ANSWERS_WITHIN = 60.0  # seconds; a cold start takes about two
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_LOG_LINES = 15


class NotStarted(RuntimeError):
    """A daemon ended before it answered, or never answered."""


def start(state: StateDirectory) -> list[str]:
    """Start whichever daemon does not run and wait until every service answers; returns the names of those started."""
    state.create()
    with state.lock("lifecycle"):
        missing = [name for name in _COMMANDS if processes.alive(state.pids, name) is None]
        for name, wait in ((DAEMON, _wait_until_ready), (KUBELET, _wait_until_recorded)):
            wait(state, _spawn(state, name) if name in missing else None)
    return missing


def stop(state: StateDirectory) -> list[str]:
    """End the kubelet, which ends its containers, then the daemon; returns the names of those that ran."""
    with state.lock("lifecycle"):
        running = [(name, processes.alive(state.pids, name)) for name in (KUBELET, DAEMON)]
        return [name for name, process in running if process and process.end(grace=_GRACE[name])]


def _spawn(state: StateDirectory, name: str) -> subprocess.Popen[bytes]:
    with state.log(name).open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "localcloud", "--state-dir", str(state.root), _COMMANDS[name]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=Path(__file__).resolve().parents[1],
            start_new_session=True,
        )


def _wait_until_ready(state: StateDirectory, spawned: subprocess.Popen[bytes] | None) -> None:
    """Until every service answers, be it with a refusal."""
    waiting: dict[str, str] = {}
    for _ in _attempts(state, DAEMON, spawned):
        if processes.alive(state.pids, DAEMON):
            environment = LocalEnvironment.from_file(state.environment_file)
            waiting = waiting or _addresses(environment)
            with httpx.Client(verify=ssl.create_default_context(cafile=environment.ca_file), timeout=2) as client:
                waiting = {name: url for name, url in waiting.items() if not _answers(client, url)}
            if not waiting:
                return
    raise NotStarted(
        f"{', '.join(waiting) or DAEMON} did not answer within {_ANSWERS_WITHIN:.0f} s: {state.log(DAEMON)}"
    )


def _wait_until_recorded(state: StateDirectory, spawned: subprocess.Popen[bytes] | None) -> None:
    for _ in _attempts(state, KUBELET, spawned):
        if processes.alive(state.pids, KUBELET):
            return
    raise NotStarted(f"the kubelet did not begin within {_ANSWERS_WITHIN:.0f} s: {state.log(KUBELET)}")


def _attempts(state: StateDirectory, name: str, spawned: subprocess.Popen[bytes] | None) -> Iterator[None]:
    """Yields with ever longer pauses until the time is over; raises `NotStarted` when the process ended meanwhile."""
    pause, deadline = _FIRST_PAUSE, time.monotonic() + _ANSWERS_WITHIN
    while time.monotonic() < deadline:
        if spawned is not None and spawned.poll() is not None:
            said = state.log(name).read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise NotStarted("\n".join([f"{name} ended with status {spawned.returncode}:", *said]))
        yield
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _addresses(environment: LocalEnvironment) -> dict[str, str]:
    kubeconfig = yaml.safe_load(Path(environment.kubeconfig).read_text())
    return {
        "entra": f"{environment.authority_host}{environment.tenant_id}/v2.0/.well-known/openid-configuration",
        "arm": f"{environment.arm_endpoint}/subscriptions?api-version=2022-12-01",
        "graph": f"{environment.graph_endpoint}/v1.0/applications",
        "keyvault": f"{environment.key_vault_endpoint}/secrets?api-version=7.4",
        "imds": f"{environment.imds_endpoint}/metadata/identity/oauth2/token",
        "kubernetes": f"{kubeconfig['clusters'][0]['cluster']['server']}/readyz",
    }


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code < httpx.codes.INTERNAL_SERVER_ERROR
    except httpx.TransportError:
        return False
