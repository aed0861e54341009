"""The Pulumi engine's commands for one stack."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ops.environment import LOCAL_STACK, ROOT, local_paths, variables
from ops.trouble import Trouble


@dataclass(frozen=True)
class Engine:
    """Runs `pulumi` for a stack of the project in `root`. What it prints goes to `output`, a file descriptor."""

    stack: str
    root: Path = ROOT
    output: int = field(default_factory=sys.stdout.fileno)

    @property
    def is_local(self) -> bool:
        """Whether it is the stack of the local cloud."""
        return self.stack == LOCAL_STACK

    def prepare(self) -> None:
        """Make sure that the local stack exists; others are made by a person, who chooses their secrets provider.

        The engine keeps a stack's encryption salt in its configuration file. This one's passphrase belongs to this
        machine, so the salt must not get into the file in the repository: the stack is made from a project of the same
        name beside its state, and the engine reads a copy of the configuration with the salt in it
        (`_local_configuration`).
        """
        if not self.is_local:
            return
        local_paths().create()
        project = local_paths().engine
        name = yaml.safe_load((self.root / "Pulumi.yaml").read_text())["name"]
        (project / "Pulumi.yaml").write_text(f"name: {name}\nruntime: python\n")
        self._capture("stack", "select", self.stack, "--create", directory=project)

    def up(self, arguments: Sequence[str] = ()) -> None:
        """`pulumi up`: unattended for the local stack; elsewhere a person is asked, unless `--yes` is given."""
        unattended = ("--yes", "--non-interactive", "--skip-preview") if self.is_local else ()
        self._stream("up", *unattended, *self._configuration(), *arguments)

    def preview(self, arguments: Sequence[str] = ()) -> None:
        """`pulumi preview`."""
        self._stream("preview", *self._configuration(), *arguments)

    def destroy(self, arguments: Sequence[str] = ()) -> None:
        """`pulumi destroy`, asking as `up` does."""
        unattended = ("--yes", "--non-interactive", "--skip-preview") if self.is_local else ()
        self._stream("destroy", *unattended, *self._configuration(), *arguments)

    def remove(self) -> None:
        """`pulumi stack rm` of an empty stack; its configuration file stays."""
        self._stream("stack", "rm", "--yes", "--preserve-config")

    def outputs(self) -> Mapping[str, Any]:
        """The stack's outputs, secrets masked; raises Trouble when there is no such stack."""
        outputs: Mapping[str, Any] = json.loads(self._capture("stack", "output", "--json", "--stack", self.stack))
        return outputs

    def _configuration(self) -> tuple[str, ...]:
        return ("--config-file", str(_local_configuration(self.root))) if self.is_local else ()

    def _stream(self, *arguments: str) -> None:
        command = ["pulumi", *arguments, "--stack", self.stack]
        code = subprocess.run(command, cwd=self.root, env=variables(self.stack), stdout=self.output).returncode
        if code != 0:
            raise Trouble(f"`pulumi {arguments[0]}` ended with code {code}; the reason stands above")

    def _capture(self, *arguments: str, directory: Path | None = None) -> str:
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=directory or self.root,
            env=variables(self.stack),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise Trouble(f"`pulumi {' '.join(arguments)}`: {done.stderr.strip() or f'code {done.returncode}'}")
        return done.stdout


def _local_configuration(root: Path) -> Path:
    """The local stack's configuration with the salt that belongs to this machine's passphrase."""
    source = root / f"Pulumi.{LOCAL_STACK}.yaml"
    engine = local_paths().engine
    text = source.read_text()
    if "encryptionsalt" in yaml.safe_load(text):
        raise Trouble(
            f"{source.name} has an `encryptionsalt`, which only fits the passphrase of the machine that wrote it. "
            "Remove the line; a secret the local stack needs goes into a file that the configuration names."
        )
    salt = yaml.safe_load((engine / source.name).read_text())["encryptionsalt"]
    copy = engine / "configuration.yaml"
    copy.write_text(f"encryptionsalt: {salt}\n{text}")
    return copy
