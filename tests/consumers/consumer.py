"""A program with the mounts and variables of an identity's pod, and what it reads and writes first."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Self

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity, Mount
from localcloud.testing.running import ClusterKind, StateDirectory
from tests.harness import LocalStack
from tests.rooted import SCRIPT, UNSHARED, lacking

NONE: Final = "<nil>"
EXPIRED: Final = "InvalidAuthenticationToken"
"""A token has expired at ARM, and not yet by the program's clock, which began with the answer: it soon has another."""
_MOST_QUESTIONS: Final = 100


@dataclass(frozen=True)
class Pod:
    """What a program's container has: the tree of its mounts, and its variables."""

    tree: Path
    variables: Mapping[str, str]


class Consumer(ABC):
    """A program of `field`'s pod. Subclasses say how it is started and called.

    `program` is its file in the folder of programs, whose upstream docs/explanation/testing.md names.
    """

    program: ClassVar[str]
    field: ClassVar[str]
    guest: ClassVar[bool] = False
    """Whether it needs a kube-apiserver as its guest cluster."""

    def __init__(self, stack: LocalStack, folder: Path, pod: Pod | None = None) -> None:
        """`folder` is new, and the program's /tmp: sockets lie there, and what it prints.

        Without `pod` it has what the identity's probe has.
        """
        folder.mkdir()
        self.stack = stack
        self.folder = folder
        self._pod = pod
        self._process: subprocess.Popen[str] | None = None
        self.answering: subprocess.Popen[str] | None = None
        """What answers the lines of `ask`: the program itself, or what calls it."""

    @classmethod
    def missing(cls) -> str:
        """Why it cannot run here; "" if it can."""
        return missing(cls.program, guest=cls.guest)

    @classmethod
    def binary(cls) -> Path:
        """The program's file."""
        return program(cls.program)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the program; returns at once."""
        environment, row = self.stack.environment, row_of(self.field)
        pod = self._pod or self._of_the_probe(row)
        command = (str(pod.tree), str(self.folder / "root"), environment.ca_file, str(self.folder), str(self.binary()))
        with (self.folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [*UNSHARED, SCRIPT, self.program, *command, *self.arguments(row.mounts[0])],
                env={
                    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                    "HTTPS_PROXY": environment.proxy_endpoint,
                    "SSL_CERT_FILE": "/ca.crt",
                    **pod.variables,
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if self.answers else log,
                stderr=log,
                text=True,
            )
        self.answering = self._process

    def _of_the_probe(self, row: ControlPlaneIdentity) -> Pod:
        name = row.probe_name(row.mounts[0])
        [container] = [
            resource["inputs"]["spec"]["template"]["spec"]["containers"][0]
            for resource in self.stack.resources()
            if resource["type"] == "kubernetes:apps/v1:Deployment" and resource["inputs"]["metadata"]["name"] == name
        ]
        tree = Path(self.stack.environment.mounts_dir, self.namespace, name).resolve()
        return Pod(tree, {variable["name"]: variable["value"] for variable in container["env"] if "value" in variable})

    def stop(self) -> None:
        """End the program."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    answers: ClassVar[bool] = False
    """Whether it answers each line of its standard input by a line, as the clients of this folder do."""

    def ask(self, line: str) -> str:
        """The answer to a line: an error, or `NONE`."""
        assert self.answering is not None
        assert self.answering.stdin is not None
        assert self.answering.stdout is not None
        self.answering.stdin.write(f"{line}\n")
        self.answering.stdin.flush()
        answer = self.answering.stdout.readline()
        assert answer, f"{self.program} has ended: {self.printed()}"
        return str(json.loads(answer))

    def printed(self) -> str:
        """What it has printed, in all its starts."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    @abstractmethod
    def arguments(self, mount: Mount) -> Sequence[str]:
        """The program's arguments, with the pod's paths."""

    @abstractmethod
    def work(self) -> str:
        """Read and write what the program reads and writes first, and take it back; returns the refusal, if any."""

    @property
    def cluster(self) -> dict[str, Any]:
        """The settings of the hosted cluster, or of the self-managed one behind it."""
        *_, found = self.stack.configuration("hostedClusters")
        return dict(found)

    @property
    def namespace(self) -> str:
        """Of the hosted cluster's control plane."""
        return f"clusters-{self.cluster['name']}"


class Client(Consumer):
    """A client of this folder, whose work is lines."""

    answers = True

    @abstractmethod
    def lines(self) -> Sequence[str]:
        """What it is asked, in order."""

    def work(self) -> str:
        return next((answer for answer in map(self._answer, self.lines()) if answer != NONE), "")

    def _answer(self, line: str) -> str:
        answers = (self.ask(line) for _ in range(_MOST_QUESTIONS))
        return next((answer for answer in answers if EXPIRED not in answer), EXPIRED)


def row_of(field: str) -> ControlPlaneIdentity:
    """The identity's row of the catalogue."""
    [row] = [identity for identity in CONTROL_PLANE if identity.field == field]
    return row


def guest_kubeconfig(stack: LocalStack, folder: Path) -> None:
    """Give a program the local cluster as its guest cluster, at /tmp/kubeconfig."""
    (folder / "kubeconfig").write_bytes(StateDirectory(stack.state).administrator_kubeconfig.read_bytes())


def missing(name: str, *, guest: bool) -> str:
    """Why a program cannot run here, `guest` if it needs a kube-apiserver as its guest cluster; "" if it can."""
    if reason := lacking("CONSUMERS", programs=[name]):
        return reason
    if guest and os.environ.get("LOCALCLOUD_CLUSTER") != ClusterKind.API_SERVER:
        return f"{name} needs a kube-apiserver as its guest cluster: CLUSTER=apiserver"
    return ""


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test where a program is missing, or the kube-apiserver that it needs."""
    return pytest.mark.skipif(bool(reason := missing(name, guest=True)), reason=reason)


def program(name: str) -> Path:
    """A program of the folder."""
    return Path(os.environ["CONSUMERS"], name).resolve()


def free_port() -> int:
    """A port of this machine that nobody has now."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])
