"""Kills processes of a stack at chosen moments, and compares the cloud with the state."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from identity import resource_types
from localcloud.testing.running import DAEMON, processes
from tests.engine.fault_daemon import ANY
from tests.harness import PROJECT, LocalStack, running_stack

Victim = Literal["engine", "plugin", "local cloud"]
Thing = tuple[str, str]
"""Kind and name of something in the cloud."""

_CREDENTIAL_SECRET: Final = "idstack:index:CredentialSecret"
ENDS_WITHIN: Final = 60.0
"""Seconds until a process that does not end is a failure."""
_MADE_BY_PLUGINS: Final = {
    "namespaces": "Namespace",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "deployments": "Deployment",
    "secretproviderclasses": "SecretProviderClass",
    "azureclusteridentities": "AzureClusterIdentity",
}


@dataclass(frozen=True)
class Kill:
    """Whom to kill at the `write`-th write of the plugins (counted from 1).

    `what`: only writes to this service, or for this step of a credential, count. `moment`: a write that the local cloud
    dies before never happens; after it, only the answer is lost.
    """

    victim: Victim
    write: int
    moment: Literal["before", "after"] = "after"
    what: str = ANY


@contextmanager
def small_stack(
    root: Path, cluster_side: str, *, warm: bool = True, providers: str | None = None, **faults: Any
) -> Iterator[LocalStack]:
    """A stack with every type of resource, but few of each: two Entra applications, one credential for the others."""
    with running_stack(root, warm=warm, providers=providers, **faults) as stack:
        [cluster] = stack.configuration("hostedClusters")
        imported = cluster["identities"]["imageRegistry"]
        fields = ("controlPlaneOperator", "ingress", "network", "disk", "file", "kms")
        identities = {**dict.fromkeys(fields, imported), "imageRegistry": {"enabled": False}}
        credentials = {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 15}}
        changes = {"hostedClusters": [{**cluster, "identities": identities}], "credentials": credentials}
        with stack.configured(**changes, clusterSide=cluster_side):
            yield stack


@contextmanager
def interruption(stack: LocalStack, kill: Kill, *command: str) -> Iterator[list[int]]:
    """Run `idstack` with this command: in the block the local cloud stands still, at its end the kill happens.

    The block gets the ids of those to be killed. Returns when everything that the command started has ended.
    """
    printed = stack.state / "interrupted.log"
    with _fault_daemon(stack, kill) as fault_daemon, printed.open("w") as output:
        running = stack.started(stack.python, "-m", "ops", *command, stdout=output, stderr=output)
        plugin = _standing_still(fault_daemon, running)
        assert plugin, f"{command} ended before write {kill.write}: {printed.read_text()}"
        victims = {
            "engine": lambda: processes_of(stack, "pulumi "),
            "plugin": lambda: processes_of(stack, plugin),
            "local cloud": lambda: [fault_daemon.pid],
        }[kill.victim]()
        assert victims, f"no {kill.victim} at a write of {plugin}"
        try:
            yield victims
        finally:
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            assert fault_daemon.stdin is not None
            fault_daemon.stdin.close()
            running.wait()
        assert running.returncode != 0, f"{command} succeeded all the same: {printed.read_text()}"
        for pid in processes_of(stack, "emulated.", "-m provider"):
            assert not outlasting(pid), f"process {pid} does not end"


def interrupted(stack: LocalStack, kill: Kill, *command: str) -> None:
    """`interruption` with nothing in between."""
    with interruption(stack, kill, *command):
        pass


def in_the_cloud(stack: LocalStack, before: set[Thing]) -> set[Thing]:
    """What the stack's plugins have made since the inventory `before`."""
    made = set()
    for kind, key in stack.inventory() - before:
        _, collection, name = key.split("/", 2) if kind == "kubernetes" else ("", "", "")
        if collection in _MADE_BY_PLUGINS:
            made.add((_MADE_BY_PLUGINS[collection], name.removeprefix("/")))
        elif kind in {"arm", "keyvault-secret", "entra-application", "entra-principal"}:
            made.add((kind, key))
    for document in documents(stack, "entra-application"):
        if ("entra-application", document["objectId"]) in made:
            # What was removed is remembered a while for the replicas that learn of it late.
            made |= {("certificate", key["keyId"]) for key in document["keys"] if key["removedAt"] is None}
    return made


def in_the_state(stack: LocalStack) -> list[Thing]:
    """The same as the state has it, twice if it is there twice."""
    return [thing for resource in stack.resources() for thing in _things(resource)]


def registered(stack: LocalStack) -> dict[str, set[str]]:
    """Key ids of the certificates registered in Entra ID, by the object id of their application."""
    return {
        document["objectId"]: {key["keyId"] for key in document["keys"] if key["removedAt"] is None}
        for document in documents(stack, "entra-application")
    }


def registered_in_state(stack: LocalStack) -> dict[str, set[str]]:
    """The same as the state has it."""
    found: dict[str, set[str]] = defaultdict(set)
    for resource in stack.resources():
        if resource["type"] == resource_types.REGISTERED_CERTIFICATE:
            application, _, key_id = resource["id"].split("/")
            found[application].add(key_id)
    return dict(found)


def documents(stack: LocalStack, kind: str) -> list[dict[str, Any]]:
    """What the local cloud remembers of a kind."""
    return [json.loads(text) for (found, _), text in stack.contents().items() if found == kind]


def _things(resource: dict[str, Any]) -> Iterator[Thing]:
    token, found = resource["type"], resource.get("id", "")
    plugin, _, kind = token.partition(":")
    if plugin == "kubernetes":
        yield kind.rpartition(":")[2], found
    elif token == _CREDENTIAL_SECRET:
        yield "keyvault-secret", "/".join(found.split("/")[8::2])
    elif plugin == "azure-native":
        yield "arm", found.lower()
        if kind == "managedidentity:UserAssignedIdentity":
            yield "entra-principal", resource["outputs"]["principalId"]
    elif plugin == "azuread":
        names = {"Application": "entra-application", "ServicePrincipal": "entra-principal"}
        yield names.get(kind.rpartition(":")[2], "certificate"), found.rpartition("/")[2]


@contextmanager
def _fault_daemon(stack: LocalStack, kill: Kill) -> Iterator[subprocess.Popen[str]]:
    """The local cloud with a daemon that stands still at the chosen write."""
    daemon = processes.alive(stack.state / "pids", DAEMON)
    assert daemon is not None
    daemon.end(grace=ENDS_WITHIN)
    arguments = [str(stack.state), str(kill.write), kill.moment, kill.what]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.engine.fault_daemon", *arguments],
        cwd=PROJECT,
        env=stack.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as fault_daemon:
        try:
            assert fault_daemon.stdout is not None
            assert fault_daemon.stdout.readline() == "serving\n"
            stack.local_cloud("start")
            yield fault_daemon
        finally:
            fault_daemon.terminate()


def _standing_still(fault_daemon: subprocess.Popen[str], running: subprocess.Popen[bytes]) -> str:
    """The plugin at whose write the local cloud stands still; empty when the command ends without."""
    assert fault_daemon.stdout is not None
    ended = os.pidfd_open(running.pid)
    try:
        ready, _, _ = select.select([fault_daemon.stdout.fileno(), ended], [], [])
        return fault_daemon.stdout.readline().strip() if ended not in ready else ""
    finally:
        os.close(ended)


def processes_of(stack: LocalStack, *parts: str) -> list[int]:
    """The stack's processes whose command line has one of these parts, by default all of them.

    Its environment names the stack's directory; one that was forked from a warm interpreter (`tests/warm`) works in it.
    """
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        # It may end at any moment, or be somebody else's.
        with suppress(OSError):
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            is_meant = not parts or any(part in command for part in parts)
            if is_meant and (
                (directory / "cwd").readlink().is_relative_to(stack.root)
                or bytes(stack.root) + b"/" in (directory / "environ").read_bytes()
            ):
                found.append(int(directory.name))
    return [pid for pid in found if pid != os.getpid()]


def outlasting(pid: int) -> str:
    """The command line of a process that does not end soon by itself; empty for one that does."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return ""
    with os.fdopen(handle) as ended, suppress(OSError):
        if not select.select([ended], [], [], ENDS_WITHIN)[0]:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
