"""The Pulumi engine's commands for one stack."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from identity.clouds import LOCAL_CLOUD
from identity.settings.problems import NAMESPACE
from ops.stack import existing, hints, lock
from ops.stack.environment import ROOT, is_local, local_paths, variables
from ops.stack.errors import CommandError
from ops.stack.streaming import run_streaming


@dataclass(frozen=True)
class Engine:
    """Runs `pulumi` for a stack of the project in `root`. What it prints goes to `output`, a file descriptor."""

    stack: str
    root: Path = ROOT
    output: int = field(default_factory=sys.stdout.fileno)

    @property
    def is_local(self) -> bool:
        """Whether it is a stack of the local cloud."""
        return is_local(self.stack)

    def prepare(self) -> None:
        """Make sure that a local stack exists; others are made by a person, who chooses their secrets provider.

        The engine keeps a stack's encryption salt in its configuration file. This one's passphrase belongs to this
        machine, so the salt must not get into the file in the repository: the stack is made from a project of the same
        name beside its state, and the engine reads a copy of the configuration with the salt in it
        (`_local_configuration`).
        """
        if not self.is_local:
            return
        _must_be_of_the_local_cloud(self._file)
        local_paths().create()
        project = local_paths().engine
        name = yaml.safe_load((self.root / "Pulumi.yaml").read_text())["name"]
        (project / "Pulumi.yaml").write_text(f"name: {name}\nruntime: python\n")
        self._capture("stack", "select", self.stack, "--create", directory=project)

    def up(self, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        """`pulumi up`: unattended for a local stack; elsewhere a person is asked, unless `--yes` is given.

        `environment` reaches the program and the plugins of this run. Raises CommandError if the run fails; about what
        exists already the message names the commands that adopt it.
        """
        unattended = ("--yes", "--skip-preview", "--suppress-outputs") if self.is_local else ()
        with TemporaryDirectory() as directory:
            # Secrets are masked in it. The option is one for debugging, and is there only with the variable set.
            log = Path(directory) / "events"
            options = ("--event-log", str(log), *unattended, *self._configuration(), *arguments)
            try:
                self._stream("up", *options, environment={**(environment or {}), "PULUMI_DEBUG_COMMANDS": "true"})
            except CommandError as error:
                lines = log.read_text().splitlines() if log.exists() else []
                told = [existing.hint(existing.read(lines), self.stack), hints.hint(lines, self.stack)]
                if not any(told):
                    raise
                raise CommandError("\n\n".join([str(error), *filter(None, told)])) from None

    def preview(self, arguments: Sequence[str] = (), *, hold: bool = False) -> None:
        """`pulumi preview`; with `hold` it keeps every certificate, whatever is due."""
        with self._held() if hold else nullcontext(self._configuration()) as configuration:
            self._stream("preview", *configuration, *arguments)

    def destroy(self, arguments: Sequence[str] = ()) -> None:
        """`pulumi destroy`, asking as `up` does."""
        unattended = ("--yes", "--skip-preview") if self.is_local else ()
        self._stream("destroy", *unattended, *self._configuration(), *arguments)

    def refresh(self) -> None:
        """`pulumi refresh`, unattended: the state becomes what is there, and no operation is pending any more."""
        flags = ("--yes", "--non-interactive", "--skip-preview", "--clear-pending-creates")
        self._stream("refresh", *flags, *self._configuration())

    def import_(self, type_token: str, name: str, id: str, arguments: Sequence[str] = ()) -> None:
        """`pulumi import`, asking as `up` does. Whether it is protected is the program's to say, at the next `up`."""
        unattended = ("--yes", "--skip-preview") if self.is_local else ()
        # No code: the program has it already, and the plugins of the project give the engine no schema to write it by.
        flags = ("--generate-code=false", "--protect=false", "--suppress-outputs")
        self._stream("import", *unattended, *flags, *self._configuration(), type_token, name, id, *arguments)

    def unlock(self) -> None:
        """`pulumi cancel`: delete every lock of the stack, whoever holds it."""
        self._capture("cancel", self.stack, "--yes")

    def remove(self) -> None:
        """`pulumi stack rm` of an empty stack; its configuration file stays."""
        self._stream("stack", "rm", "--yes", "--preserve-config")

    def outputs(self) -> Mapping[str, Any]:
        """The stack's outputs, secrets masked; raises CommandError when there is no such stack."""
        outputs: Mapping[str, Any] = json.loads(self._capture("stack", "output", "--json", "--stack", self.stack))
        return outputs

    def planned(self) -> Mapping[str, Any]:
        """What a preview plans (`pulumi preview --json`), secrets masked; raises CommandError with what is wrong."""
        done = self._run("preview", "--json", *self._configuration(), "--stack", self.stack)
        try:
            plan: Mapping[str, Any] = json.loads(done.stdout)
        except ValueError:
            plan = {}
        if done.returncode != 0:
            said = [each["message"] for each in plan.get("diagnostics", ()) if each["severity"] == "error"]
            raise CommandError(f"`pulumi preview`: {''.join(said).strip() or done.stderr.strip()}")
        return plan

    def state(self) -> dict[str, Any]:
        """The state as `pulumi stack export` has it, secrets encrypted."""
        exported: dict[str, Any] = json.loads(self._capture("stack", "export", "--stack", self.stack))
        return exported

    def replace_state(self, state: Mapping[str, Any]) -> None:
        """`pulumi stack import`: the state becomes this one; the engine refuses one that is not sound."""
        self._capture("stack", "import", "--stack", self.stack, text=json.dumps(state))

    def configured(self) -> dict[str, Any]:
        """The stack's configuration without its secrets, the project's keys without their namespace."""
        told = json.loads(self._capture("config", "--json", *self._configuration(), "--stack", self.stack))
        return {
            key.removeprefix(f"{NAMESPACE}:"): each.get("objectValue", each.get("value"))
            for key, each in told.items()
            if key.startswith(f"{NAMESPACE}:") and not each["secret"]
        }

    def resources(self) -> list[Mapping[str, Any]]:
        """The resources in the state, secrets encrypted; raises CommandError when there is no such stack."""
        resources: list[Mapping[str, Any]] = self.state()["deployment"].get("resources") or []
        return resources

    def siblings(self) -> list[str]:
        """The other stacks of the project in the same backend."""
        found = json.loads(self._capture("stack", "ls", "--json", directory=local_paths().engine))
        return sorted(each["name"] for each in found if each["name"] != self.stack)

    @property
    def _file(self) -> Path:
        """The stack's configuration in the project."""
        return self.root / f"Pulumi.{self.stack.rpartition('/')[2]}.yaml"

    def _configuration(self) -> tuple[str, ...]:
        return ("--config-file", str(_local_configuration(self._file))) if self.is_local else ()

    @contextmanager
    def _held(self) -> Iterator[tuple[str, ...]]:
        """The configuration with `renewal: hold`, in a copy.

        `pulumi preview --config` would write the key into the stack's file, and drop the others of `credentials`.
        """
        source = _local_configuration(self._file) if self.is_local else self._file
        with TemporaryDirectory() as directory:
            held = Path(directory) / self._file.name
            try:
                shutil.copyfile(source, held)
            except FileNotFoundError:
                raise _without_configuration(self._file) from None
            configuration = ("--config-file", str(held))
            key = ("--path", "credentials.renewal", "hold")
            self._capture("config", "set", *key, *configuration, "--stack", self.stack)
            yield configuration

    def _stream(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        command = ["pulumi", *arguments, "--stack", self.stack]
        whole = {**variables(self.stack), **(environment or {})}
        code, said = run_streaming(command, directory=self.root, environment=whole, output=self.output)
        if code != 0 and lock.is_told(said):
            raise lock.Locked(self.stack, lock.owners(said), is_local=self.is_local, command=arguments[0])
        if code != 0:
            raise CommandError(f"`pulumi {arguments[0]}` ended with code {code}; the reason stands above")

    def _capture(self, *arguments: str, directory: Path | None = None, text: str = "") -> str:
        done = self._run(*arguments, directory=directory, text=text)
        if done.returncode != 0:
            raise CommandError(f"`pulumi {' '.join(arguments)}`: {done.stderr.strip() or f'code {done.returncode}'}")
        return done.stdout

    def _run(self, *arguments: str, directory: Path | None = None, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run without a terminal; `text` is the standard input."""
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=directory or self.root,
            env=variables(self.stack),
            input=text,
            capture_output=True,
            text=True,
        )


def _local_configuration(source: Path) -> Path:
    """A local stack's configuration with the salt that belongs to this machine's passphrase."""
    engine = local_paths().engine
    salt = yaml.safe_load((engine / source.name).read_text())["encryptionsalt"]
    copy = engine / f"configuration.{source.name.removeprefix('Pulumi.')}"
    copy.write_text(with_salt(source.read_text(), salt, source.name))
    return copy


def with_salt(configuration: str, salt: str, name: str) -> str:
    """A stack's configuration (YAML) with this `encryptionsalt`, in the place of one that may be there.

    A bare `pulumi preview` in the checkout writes one that belongs to the passphrase of whoever ran it. Only secret
    values depend on it; raises CommandError if `configuration`, the content of the file `name`, has any.
    """
    found = yaml.safe_load(configuration).get("encryptionsalt")
    if found not in (None, salt) and _has_secret(yaml.safe_load(configuration).get("config")):
        raise CommandError(
            f"{name} has secret values and an `encryptionsalt`, which fit no passphrase but that of the machine that "
            "wrote them. Remove both; a secret that the local stack needs goes into a file that the configuration names"
        )
    lines = (line for line in configuration.splitlines(keepends=True) if not line.startswith("encryptionsalt:"))
    return "".join([f"encryptionsalt: {salt}\n", *lines])


def _has_secret(value: Any) -> bool:
    """Whether a value of the configuration is encrypted (`secure: <cipher text>`), or has such a value in it."""
    if isinstance(value, Mapping):
        return "secure" in value or any(map(_has_secret, value.values()))
    return isinstance(value, list) and any(map(_has_secret, value))


def _must_be_of_the_local_cloud(source: Path) -> None:
    """The emulated plugins would refuse another cloud's stack anyway, but in words that say nothing of its name."""
    try:
        configuration = yaml.safe_load(source.read_text()) or {}
    except FileNotFoundError:
        raise _without_configuration(source) from None
    cloud = (configuration.get("config") or {}).get(f"{NAMESPACE}:cloud")
    if cloud != LOCAL_CLOUD:
        raise CommandError(
            f"{source.name} has `{NAMESPACE}:cloud: {cloud}`, but the name of its stack is one of the local cloud's, "
            f"which are local and local-<word>. Say `{NAMESPACE}:cloud: {LOCAL_CLOUD}`, or give the stack another name"
        )


def _without_configuration(source: Path) -> CommandError:
    stack = source.name.removeprefix("Pulumi.").removesuffix(".yaml")
    return CommandError(f"the stack {stack} has no configuration: there is no {source.name}")
