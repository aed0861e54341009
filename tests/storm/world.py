"""The stack of a storm, its pod, its clock, and clients that sign in with what the vault has all the while."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Set
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from identity.credentials import rfc3339
from identity.credentials.document import decode
from localcloud.testing.azure import SECRET_KIND, Document, Store
from localcloud.testing.running import StateDirectory
from tests.engine.clients import Client, bare_sign_in
from tests.engine.rotations import LIFE, SETTLED, run_consumer
from tests.engine.small_stack import age_deliveries, small_stack
from tests.harness import LocalStack
from tests.storm import disk, standstill
from tests.storm.plan import Disturbance, Kind, Meeting, Operation, Victim
from tests.storm.processes import kill, outlasting, processes_of
from tests.storm.scale import NAMESPACE, POD

Thing = tuple[str, str]
"""Kind and name of something in the cloud."""
SECRETS: Final = {"cloudProvider": "cloud-provider-hc1-json", "nodePoolManagement": "nodepool-mgmt-hc1-json"}
"""The vault's secret of each application."""
MOUNTED: Final = "cloudProvider"
"""The application whose credential the pod mounts."""
# More than any plan lets pass: no certificate may begin in the future. One of two years is valid all the while.
_DAYS: Final = 400
# Of certificates that are renewed every six weeks or so.
_LONG_LIFE: Final = {**LIFE, "renewBeforeDays": 685}
_BETWEEN_ROTATIONS: Final = timedelta(hours=9)  # pods need the certificate before for eight and a half
PAUSE: Final = 0.3  # seconds between two sign-ins
_NOTHING_YET: Final = "no credential"
_ENGINE: Final = ("pulumi ",)
_PLUGINS: Final = ("emulated.azure_native", "emulated.azuread", "-m provider")
# Without the language host: it asks now and then whether its engine is there (pulumi `rpcutil.Healthcheck`).
_COMMANDS: Final = (*_ENGINE, *_PLUGINS, "emulated.kubernetes")
_ENDS_WITHIN: Final = 300.0  # seconds, of a command after it was disturbed
_LAST_LINES: Final = 40


@dataclass(frozen=True)
class Done:
    """A command that ended: what it printed, and what was done to it; `happened` is empty if it went undisturbed."""

    command: tuple[str, ...]
    code: int
    printed: str
    happened: str = ""
    seconds: float = 0
    writes: int = 0
    """To the disk, until it ended or was disturbed."""


@dataclass
class World:
    """The stack before, during and after each operation."""

    stack: LocalStack
    patch: pytest.MonkeyPatch
    is_warm: bool = True
    """Whether the engine's plugins are forked, which see no end of it."""
    clock: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(days=_DAYS))
    printed: list[str] = field(default_factory=list)
    seeded: set[Thing] = field(default_factory=set)
    made_by_pods: set[Thing] = field(default_factory=set)
    """What somebody else made for the pod."""
    replicas: int = 0
    """Of the pod, as it was scaled last."""
    _disk: threading.Lock = field(default_factory=threading.Lock)
    _is_going: threading.Event = field(default_factory=threading.Event)

    def command(self, operation: Operation) -> tuple[str, ...]:
        """Let the time pass that the operation needs, change the configuration as it says, and return what to run.

        Raises ValueError for an operation that is another stack's.
        """
        match operation.kind:
            case Kind.RENEW | Kind.DAY | Kind.FAULT | Kind.PUT_BACK | Kind.EDIT:
                self._pass(timedelta(days=1))
                return ("renew",)
            case Kind.ROTATE:
                self._pass(_BETWEEN_ROTATIONS)
                return ("rotate", "--identity", operation.argument)
            case Kind.REVOKE | Kind.RESTORE | Kind.LAG:
                self._pass(_BETWEEN_ROTATIONS)
                identity, _, now = operation.argument.partition("-")
                return ("rotate", "--identity", identity, "--revoke", *(("--now",) if now else ()))
            case Kind.CHANGE:
                self._change(operation.argument)
                return ("up",)
            case Kind.SCALE:
                self.replicas = int(operation.argument)
                return ("scale", operation.argument)
            case Kind.UP | Kind.DOWN:
                self._start()
                if operation.argument:
                    self.stack.configure(clusterSide=operation.argument)
                return (operation.kind.value,)
            case Kind.SWEEP:
                self._pass(_BETWEEN_ROTATIONS)
                with self._store() as store:
                    assert store is not None
                    age_deliveries(store)
                return ("sweep", "--yes")
            case Kind.RECOVER:
                return ("recover",)
            case Kind.LOSE:
                return ("up",)
            case Kind.NEIGHBOUR | Kind.TWIN | Kind.PLANT | Kind.CASE:
                raise ValueError(f"{operation} runs nothing for the storm's stack")

    def run(self, *command: str, disturbance: Disturbance | None = None, chance: random.Random | None = None) -> Done:
        """Run `idstack` with these arguments, or the scaling, to its end."""
        line = self._line(*command)
        before, happened, began = disk.image(self.stack.state), "", time.monotonic()
        log = self.stack.root / "printed.txt"
        with disk.Writes(self.stack.state) as writes, log.open("w") as output:
            if disturbance is not None and disturbance.moment:
                with standstill.interruption(self.stack, disturbance, line, output) as (running, _):
                    counted, happened = 0, f"{disturbance.victim} killed"
            else:
                running = self.stack.started(*line, stdout=output, stderr=output)
                with os.fdopen(os.pidfd_open(running.pid)) as ended:
                    counted = writes.await_write(disturbance.write if disturbance else sys.maxsize, ended.fileno())
                if disturbance is not None and counted >= disturbance.write:
                    chance = chance or random.Random(0)  # noqa: S311
                    happened = self._disturb(disturbance, before, writes.replaced, chance)
            try:
                running.wait(_ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGTERM)
                running.wait()
                raise AssertionError(f"{command} does not end; {happened}: {log.read_text()}") from None
        text = log.read_text(errors="replace")
        self.printed.append(text)
        return Done(command, running.returncode, text, happened, time.monotonic() - began, counted)

    def meet(self, meeting: Meeting, first: tuple[str, ...], other: tuple[str, ...]) -> list[Done]:
        """Run two commands at once to their ends."""
        lines = [self._line(*command) for command in (first, other)]
        if ("down",) in (first, other):
            self._is_going.set()
        logs = [self.stack.root / name for name in ("first.txt", "other.txt")]
        began = time.monotonic()
        with logs[0].open("w") as output, logs[1].open("w") as another:
            codes, happened = standstill.meet(self.stack, meeting, lines, (output, another))
        texts = [log.read_text(errors="replace") for log in logs]
        self.printed += texts
        if self.stack.state.exists():
            self.stack.local_cloud("start")
        seconds = time.monotonic() - began
        return [Done(*done, happened, seconds) for done in zip((first, other), codes, texts, strict=True)]

    def _line(self, *command: str) -> list[str]:
        """The command line, after which the vault is not read if it removes the local cloud."""
        with self._disk:  # a store that is opened while it is removed would be made again
            (self._is_going.set if command[0] == "down" else self._is_going.clear)()
        if command[0] == "scale":
            return [self.stack.python, "-m", "tests.storm.scale", str(self.stack.state / "run/kubeconfig"), command[1]]
        return [self.stack.python, "-m", "ops", *command]

    def secrets(self) -> dict[str, list[Document]]:
        """The versions of each application's secret in the vault, the newest last."""
        with self._store() as store:
            found = {} if store is None else {secret["name"]: secret for secret in _live(store)}
        return {field: found[name]["versions"] for field, name in SECRETS.items() if name in found}

    def documents(self) -> dict[str, dict[str, Any]]:
        """The credential of each application, as the vault has it now."""
        with self._store() as store:
            found = (
                {} if store is None else {application: _document(store, name) for application, name in SECRETS.items()}
            )
        return {application: document for application, document in found.items() if document is not None}

    def ensure_pod(self) -> None:
        """Run the pod, if it does not run since the local cloud was made."""
        with self.stack.kubernetes("administrator") as http:
            missing = http.get(f"/api/v1/namespaces/{NAMESPACE}").status_code == 404
        if missing:
            before = self.stack.inventory()
            run_consumer(self.stack)
            self.made_by_pods = self.stack.inventory() - before
            self.replicas = 1

    def mounted(self) -> list[str]:
        """The thumbprint of what each replica of the pod has mounted, empty if it has nothing yet."""
        trees = Path(self.stack.environment.mounts_dir, NAMESPACE).glob(f".{POD}-*/")
        return [_thumbprint(tree / "mnt/certs" / SECRETS[MOUNTED]) for tree in trees]

    def daemon_log(self) -> str:
        """The last lines of the local cloud's log."""
        log = self.stack.state / "daemon.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-_LAST_LINES:]) if log.exists() else "none"

    def left_behind(self) -> list[str]:
        """The command lines of processes that outlive their command for longer than they need to end."""
        return [text for pid in processes_of(self.stack, *_COMMANDS) if (text := outlasting(pid))]

    @contextmanager
    def signing_in(self) -> Iterator[dict[str, Client]]:
        """A client of each application, which reads the vault's credential again for each sign-in, until the end."""
        with ExitStack() as ends:
            yield {
                secret: ends.enter_context(Client(partial(self._sign_in, secret), pause=PAUSE)) for secret in SECRETS
            }

    def _start(self) -> None:
        """Start a local cloud if there is none, and note what it has before the stack is brought up."""
        if not self.stack.state.exists():
            self.stack.__dict__.pop("environment", None)  # it has other ports
            self.stack.local_cloud("start")
            self.seeded, self.made_by_pods, self.replicas = self.stack.inventory(), set(), 0

    def _pass(self, time_passed: timedelta) -> None:
        self.clock += time_passed
        assert self.clock < datetime.now(UTC), "no certificate is used before its time"
        self.patch.setenv("IDSTACK_CLOCK", rfc3339.render(self.clock))

    def _change(self, what: str) -> None:
        match what:
            case "registry":
                # Once: its secret would be softly deleted otherwise, and a person has to recover that.
                [cluster] = self.stack.configuration("hostedClusters")
                identities = cluster["identities"]
                self.stack.configure(
                    hostedClusters=[{**cluster, "identities": {**identities, "imageRegistry": identities["disk"]}}]
                )
            case "tags":
                self.stack.configure(tags={"environment": "local", "storm": rfc3339.render(datetime.now(UTC))})
            case "life":
                self.stack.configure(credentials={**_LONG_LIFE, "propagation": SETTLED})
            case _:
                self.stack.configure(roles=what)

    def _disturb(self, disturbance: Disturbance, before: disk.Image, replaced: Set[Path], chance: random.Random) -> str:
        # The lock: no client has the store open while power is lost, or it would be as if its process had survived.
        with self._disk, disk.frozen(self.stack):
            match disturbance.victim:
                case Victim.MACHINE:
                    return f"power lost: {disk.lose_power(self.stack, before, replaced, disturbance.kept / 100)}"
                case Victim.ENGINE:
                    victims = processes_of(self.stack, *(_COMMANDS if self.is_warm else _ENGINE))
                case Victim.PLUGIN:
                    running = [pids for plugin in _PLUGINS if (pids := processes_of(self.stack, plugin))]
                    victims = chance.choice(running) if running else []
                case Victim.DAEMON:
                    victims = _recorded(self.stack, "daemon")
                case Victim.KUBELET:
                    victims = _recorded(self.stack, "kubelet")
            kill(*victims)
            return f"{disturbance.victim} killed" if victims else ""

    def _sign_in(self, identity: str) -> str:
        """A refusal counts only of a certificate that the vault still has afterwards: it may be renewed meanwhile."""
        used: dict[str, Any] | None = None
        try:
            used = self._document(identity)
            return bare_sign_in(used) if used else _NOTHING_YET
        except Exception:
            if used is None or self._document(identity) != used:
                return _NOTHING_YET
            raise

    def _document(self, identity: str) -> dict[str, Any] | None:
        with self._disk:
            if self._is_going.is_set():
                return None
            with self._store() as store:
                return None if store is None else _document(store, SECRETS[identity])

    @contextmanager
    def _store(self) -> Iterator[Store | None]:
        state = StateDirectory(self.stack.state)
        if not state.exists() or not (state.root / "seal.key").exists():
            yield None
            return
        with closing(state.open_store()) as store:
            yield store


@contextmanager
def storm_world(root: Path, *, is_warm: bool = True) -> Iterator[World]:
    """A small stack before its first `up`, whose local cloud runs; see `running_stack` for its interpreters."""
    with (
        pytest.MonkeyPatch.context() as patch,
        small_stack(root, "hypershift", warm=is_warm) as stack,
        stack.configured(credentials={**LIFE, "propagation": SETTLED}),
    ):
        patch.setenv("REQUESTS_CA_BUNDLE", str(stack.state / "ca.pem"))
        world = World(stack, patch, is_warm)
        world._pass(timedelta(0))
        world.seeded = stack.inventory()
        yield world


def _document(store: Store, name: str) -> dict[str, Any] | None:
    for secret in _live(store):
        if secret["name"] == name and secret["versions"]:
            current = secret["versions"][-1]
            assert current["enabled"], f"{name} cannot be read"
            found: dict[str, Any] = json.loads(store.unseal(current["sealed"]))
            return found
    return None


def _live(store: Store) -> Iterator[Document]:
    """The secrets of the vaults, without those that are deleted and could be recovered: no pod gets one of these."""
    return (secret for _, secret in store.items(SECRET_KIND) if secret["deletedAt"] is None)


def _thumbprint(file: Path) -> str:
    try:
        return decode(file.read_bytes()).thumbprint
    except FileNotFoundError:
        return ""


def _recorded(stack: LocalStack, name: str) -> list[int]:
    file = stack.state / "pids" / f"{name}.json"
    return [json.loads(file.read_text())["pid"]] if file.exists() else []
