"""Starting and stopping the local cloud's processes from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import httpx

from localcloud.apiserver.apply import ApiServer, roles
from localcloud.apiserver.commands import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    Binaries,
    etcd,
    kube_apiserver,
    kube_controller_manager,
)
from localcloud.core import processes
from localcloud.core.clouds import AKS_SERVER_APP_ID, LocalEnvironment
from localcloud.core.cluster import ClusterKind, choose
from localcloud.core.state_directory import StateDirectory
from localcloud.runtime.seed_errors import NotSeededError

if TYPE_CHECKING:
    from localcloud.runtime.seed_file import Seed
import ssl
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import TypeAlias

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
    headers = {"Authorization": f"Bearer {token}"} if token else None
    with to.client(timeout=2, headers=headers) as client:
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
        ended = None
        if spawned is not None and spawned.poll() is not None:
            ended = f"{name} ended with status {spawned.returncode}:"
        if spawned is None and processes.alive(state.pids, name) is None:  # it ran already, and is no child of ours
            ended = f"{name} ended before it answered; start it again. Its log's last lines:"
        if ended is not None:
            tail = state.log(name).read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise NotStartedError("\n".join([ended, *tail]))
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


KUBELET = "kubelet"
_LONGER_THAN_A_START = timedelta(minutes=10)
_SEEDED_WITHIN: Final = 180.0  # seconds; the first time it makes keys and certificates
# The kubelet ends its containers, for which it needs an API; kube-apiserver needs its etcd.
_STOPPED_IN_ORDER = {  # with the seconds that each may take; a pod's own grace period is 30
    KUBELET: 45.0,
    CONTROLLER_MANAGER: 10.0,
    API_SERVER: 15.0,
    ETCD: 10.0,
    DAEMON: 10.0,
}


@dataclass(frozen=True)
class _Program:
    """One process of the local cloud: its command line, and how to wait until it is ready."""

    name: str
    command: Sequence[str]
    wait: Wait
    # Programs of this project record their processes themselves, also in the foreground.
    records_itself: bool = True


def start(state: StateDirectory, wanted: ClusterKind | None = None, seed: Seed | None = None) -> list[str]:
    """Start missing processes and wait until every service answers; returns the names of those started.

    Processes that another release started are ended first: they lack what this one's clients need. Pods run in the
    current directory, which is what their images would hold.

    Raises NotStartedError, PortTakenError, PermissionError, SeedConflictError, ClusterKindConflictError, StoreError,
    and NotBuiltError if kube-apiserver is wanted and is not on this machine.
    """
    state.create()
    with state.lock("lifecycle"):
        if _is_of_another_release(state):
            _stop(state)
        daemon = _Program(DAEMON, _own(state, "run"), services)
        kubelet = _Program(KUBELET, _own(state, "kubelet"), recorded(KUBELET))
        with closing(state.open_store()) as store:
            store.check()
            if wanted is ClusterKind.API_SERVER:
                Binaries.find()  # before the choice becomes final
            if seed is not None:
                _choose_seed(state, seed)
            cluster = choose(store, wanted)
        if cluster is ClusterKind.BUILT_IN:
            return [*_start(state, [daemon]), *_start(state, [kubelet])]
        # kube-apiserver reads Entra ID's signing keys as it starts, then every ten seconds: the daemon starts first.
        started = [*_start(state, [daemon]), *_start(state, _control_plane(state))]
        _apply_objects(state)
        command = kube_controller_manager(state, Binaries.find())
        controllers = _Program(CONTROLLER_MANAGER, command, service_accounts, records_itself=False)
        return [*started, *_start(state, [controllers, kubelet])]


def seed(state: StateDirectory, wanted: Seed | None = None) -> int:
    """Create what `wanted`, or else the seed before, has and is missing; returns the number of new resources.

    Raises SeedConflictError, NotSeededError if the daemon could not do it, and StoreError without a daemon.
    """
    if processes.alive(state.pids, DAEMON) is None:
        from localcloud.runtime import environment
        from localcloud.runtime import seed as seeding

        with closing(environment.prepare(state, wanted)) as prepared:
            return seeding.seed(prepared)
    if wanted is not None:
        _choose_seed(state, wanted)
    url = f"{LocalEnvironment.from_file(state.environment_file).control_endpoint}/seed"
    try:
        # In plain text, so no authorities are loaded.
        answer = httpx.post(url, timeout=_SEEDED_WITHIN, trust_env=False, verify=False)  # noqa: S501
    except httpx.TransportError as error:
        raise NotSeededError(f"the daemon does not answer at {url} ({error}): {state.log(DAEMON)}") from None
    if answer.is_error:
        raise NotSeededError(answer.text)
    added: int = answer.json()["added"]
    return added


def stop(state: StateDirectory) -> list[str]:
    """End every process, first the kubelet with its containers; returns the names of those that ran."""
    with state.lock("lifecycle"):
        return _stop(state)


def _stop(state: StateDirectory) -> list[str]:
    running = [(name, processes.alive(state.pids, name)) for name in _STOPPED_IN_ORDER]
    return [name for name, process in running if process and process.end(grace=_STOPPED_IN_ORDER[name])]


def _is_of_another_release(state: StateDirectory) -> bool:
    """Whether an existing record has other members than this release's."""
    try:
        LocalEnvironment.from_file(state.environment_file)
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    return False


def _choose_seed(state: StateDirectory, wanted: Seed | None = None) -> Seed:
    # The seed's model takes a fifth of a second to import, which the start of a cloud that runs need not wait for.
    from localcloud.runtime import seed_file

    with closing(state.open_store()) as store:
        return seed_file.choose(store, wanted)


def _apply_objects(state: StateDirectory) -> None:
    """Apply to kube-apiserver what the built-in API has from the start, and the objects of the seed."""
    from localcloud.kubernetes.kinds import definitions

    with ApiServer(state.administrator_kubeconfig) as administrator:
        administrator.apply([*_choose_seed(state).kubernetes_objects, *roles()])
        # A cluster's own definitions, as `hypershift install` applies them, stay.
        administrator.apply(administrator.without_other_managers(definitions()))
        administrator.wait_until_served(definitions())


def _control_plane(state: StateDirectory) -> list[_Program]:
    # The daemon's imports take a second, which users of the built-in API need not wait for.
    from localcloud.runtime.environment import KUBERNETES, listen, prepare

    binaries = Binaries.find()
    prepared = prepare(state)
    deployer = prepared.cloud.directory.service_principal_by_app(prepared.environment.deployer_client_id)
    assert deployer is not None, "made by prepare"
    token = prepared.cloud.tokens.issue(deployer, AKS_SERVER_APP_ID, lifetime=_LONGER_THAN_A_START)
    prepared.close()
    if processes.alive(state.pids, API_SERVER) is None:
        listen(KUBERNETES, prepared.ports[KUBERNETES]).close()  # or raise PortTakenError
    return [
        _Program(ETCD, etcd(state, binaries), recorded(ETCD), records_itself=False),
        _Program(
            API_SERVER,
            kube_apiserver(state, binaries, prepared.ports[KUBERNETES]),
            api_server(token),
            records_itself=False,
        ),
    ]


def _own(state: StateDirectory, command: str) -> list[str]:
    return [sys.executable, "-m", "localcloud", "--state-dir", str(state.root), command]


def _start(state: StateDirectory, programs: Sequence[_Program]) -> list[str]:
    """Start those that do not run, all at once, and wait for every one; returns the names of those started."""
    missing = [program for program in programs if processes.alive(state.pids, program.name) is None]
    spawned = {program.name: _spawn(state, program) for program in missing}
    for program in programs:
        program.wait(state, spawned.get(program.name))
    return list(spawned)


def _spawn(state: StateDirectory, program: _Program) -> subprocess.Popen[bytes]:
    def record() -> None:
        # In the child, before exec: so no process is left unrecorded, whichever of the two is killed.
        processes.record(state.pids, program.name, os.getpid())

    with state.log(program.name).open("ab") as output:
        return subprocess.Popen(
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # etcd names a socket without a path.
            cwd=None if program.records_itself else state.control_plane,
            start_new_session=True,
            preexec_fn=None if program.records_itself else record,
        )
