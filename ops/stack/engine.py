"""The Pulumi engine's commands for one stack."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import DEVNULL, PIPE, run
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar, cast

from identity.azure.errors import AccessError
from identity.outputs import StackOutputs
from identity.settings import stack_file
from ops.stack import configuration, existing, plugins, state_file
from ops.stack.chosen_stack import no_such_stack
from ops.stack.errors import CommandError, RunInterruptedError, message
from ops.stack.failures import NoSuchStackError, VanishedDraftError, disk_failure, remedies
from ops.stack.pulumi_runs import PulumiRuns
from ops.stack.stack_document import document_in
from ops.stack.state import (
    Diagnostic,
    Plan,
    State,
    StateResource,
    Update,
    errors_of,
    outputs_in_log,
    outputs_of,
    resources_in,
    type_of,
)
from ops.stack.streaming import Standstill

T = TypeVar("T")
_LISTINGS: Final = 10
_PAGE: Final = 20  # entries of the history
# It writes the events of a run, with masked secrets. The engine accepts it only with the variable.
_EVENT_LOG: Final = "--event-log"
_WITH_EVENT_LOG: Final = {"PULUMI_DEBUG_COMMANDS": "true"}


class PreviewError(CommandError):
    """A preview that failed with these errors."""

    def __init__(self, errors: Sequence[Diagnostic]) -> None:
        super().__init__(f"`pulumi preview`: {''.join(error['message'] for error in errors).strip()}")
        self.types = {type_of(error.get("urn", "")) for error in errors}
        """The types of the resources that they are about; empty text for the program."""


@dataclass(frozen=True)
class Engine(PulumiRuns):
    """The commands of the engine for one stack; each raises what `PulumiRuns` does."""

    def once(self, key: str, read: Callable[[], T]) -> T:
        """A cached value; reads it if it is not cached."""
        if key not in self._read:
            self._read[key] = read()
        value: T = self._read[key]
        return value

    def prepare(self, *, is_known: bool = False) -> bool:
        """Create a local stack and the directories of its engine, if they do not exist (`ops/stack/configuration.py`).

        Returns whether the stack is new. A person creates other stacks and chooses their secrets provider.

        Raises CommandError for a stack without a configuration, or with another cloud in it, and with `is_known`
        NoSuchStackError for one beside existing ones.
        """
        if not self.is_local:
            return False
        configuration.require_local_cloud(self.file.name, self.document())
        self.paths.create()
        plugins.install(self.paths, self.caller)
        project = self.paths.engine
        configuration.write_project(project, self.root)
        configuration.remove_unreadable(self.paths)
        is_damaged = self.damage() is not None
        if is_new := is_damaged or not self._exists():
            # Without others a killed `up` or `down` may have begun, or ended, with it.
            if is_known and not is_damaged and (others := self.stacks()):
                raise NoSuchStackError(message("engine.no-local-stack", stack=self.stack, names=", ".join(others)))
            self._capture("stack", "select", self.stack, "--create", directory=project)
        if not is_damaged:
            configuration.keep_salt(project / self.file.name, self.state)
        return is_new and not is_damaged

    def _exists(self) -> bool:
        """Whether the backend has the stack. Its state is read, which every command needs later."""
        try:
            self.state()
        except NoSuchStackError:
            return False
        return True

    def create(self) -> None:
        """Create the stack if the backend does not have it, with the secrets provider that its file names."""
        if self.is_local:
            self.prepare()
            return
        # A stack with a truncated state exists, and prevents the listing of the others.
        if self.damage() or self.stack in self.stacks():
            return
        provider = self.document().get("secretsprovider")
        options = ("--secrets-provider", provider) if provider else ()
        # The selection is a person's: it decides for every later command without `--stack`.
        self._capture("stack", "init", self.stack, "--no-select", *options)

    def up(
        self, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None, *, events: Path | None = None
    ) -> None:
        """`pulumi up`: unattended for a local stack; otherwise the engine prompts without `--yes`.

        `environment` reaches the program and the plugins of this run. `events` is a file to be written: a line of JSON
        for each of the engine's events. Raises `ObstacleError` if resources exist already.
        """
        self._require_one_deployer()
        quiet = ("--suppress-outputs",) if self.is_local else ()
        with TemporaryDirectory() as directory:
            log = events or Path(directory) / "events"
            options = (*self._unattended, *quiet, *self._configuration(), *arguments)
            self._stream_logged("up", *options, log=log, environment=environment, standstill=Standstill(log))
            # The state has the same outputs, and its export takes as long as a `status`.
            if log.exists() and (outputs := outputs_in_log(log.read_text(encoding="utf-8").splitlines())):
                self._read["outputs"] = outputs

    def preview(self, arguments: Sequence[str] = (), *, hold: bool = False, events: Path | None = None) -> None:
        """`pulumi preview`; with `hold` it keeps every certificate, also those that are due. `events` as for `up`."""
        self._require_one_deployer()
        log = () if events is None else (_EVENT_LOG, str(events))
        with self._held() if hold else nullcontext(self._configuration()) as options:
            self._stream("preview", *log, *options, *arguments, environment=_WITH_EVENT_LOG if log else None)

    def destroy(self, arguments: Sequence[str] = ()) -> None:
        """`pulumi destroy`, which prompts as `up` does."""
        self._require_one_deployer()
        with TemporaryDirectory() as directory:
            log = Path(directory) / "events"
            self._stream_logged("destroy", *self._unattended, *self._configuration(), *arguments, log=log)

    @property
    def _unattended(self) -> tuple[str, ...]:
        return ("--yes", "--skip-preview") if self.is_local else ()

    def _require_one_deployer(self) -> None:
        """Raise CommandError if the providers would sign in as different identities."""
        if self.is_local:
            return
        from identity.azure.arm_environment import require_azure_native  # azure-identity takes a third of a second

        try:
            require_azure_native(self.environment)
        except AccessError as error:
            raise CommandError(f"{error}. Nothing was changed") from None

    def _stream_logged(
        self,
        command: str,
        *options: str,
        log: Path,
        environment: Mapping[str, str] | None = None,
        standstill: Standstill | None = None,
    ) -> None:
        """Stream a command that writes its events to `log`; the error of a failed one has the remedies for them."""
        debugging = {**(environment or {}), **_WITH_EVENT_LOG}
        try:
            self._stream(command, _EVENT_LOG, str(log), *options, environment=debugging, standstill=standstill)
        except RunInterruptedError:
            raise
        except CommandError as error:
            lines = log.read_text().splitlines() if log.exists() else []
            obstacles = existing.read(lines)
            reasons = [str(error), *remedies(lines, self.stack, command)]
            if not isinstance(error, state_file.StateDamagedError) and (
                failure := disk_failure("".join(lines), self.stack)
            ):
                reasons.append(str(failure))
            if obstacles:
                raise existing.ObstacleError(self.stack, obstacles, reasons) from None
            if len(reasons) == 1:
                raise
            raise CommandError("\n\n".join(reasons)) from None

    def refresh(self) -> None:
        """`pulumi refresh`, unattended, which also clears pending operations."""
        flags = ("--yes", "--non-interactive", "--skip-preview", "--clear-pending-creates")
        self._stream("refresh", *flags, *self._configuration())

    def import_(self, *arguments: str) -> None:
        """`pulumi import`, which prompts as `up` does, and protects what it imports until an `up` of the program."""
        # The program has the code already, and the project's plugins have no schema to generate it from.
        flags = ("--generate-code=false", "--suppress-outputs")
        self._stream("import", *self._unattended, *flags, *self._configuration(), *arguments)

    def unprotect(self) -> None:
        """`pulumi state unprotect` of every resource."""
        self._capture("state", "unprotect", "--all", "--yes", "--stack", self.stack)

    def unlock(self) -> None:
        """`pulumi cancel`: delete every lock of the stack."""
        self._capture("cancel", self.stack, "--yes")

    def remove(self) -> None:
        """`pulumi stack rm` of an empty stack; its configuration file stays."""
        self._stream("stack", "rm", "--yes", "--preserve-config")

    def outputs(self) -> StackOutputs[str]:
        """The stack's outputs, none of which is secret. A stack that does not exist is an error."""
        return self.once("outputs", lambda: outputs_of(self.state()))

    def planned(self, arguments: Sequence[str] = ()) -> Plan:
        """The plan of a preview; secrets are masked. Raises `PreviewError` with the messages of a failed preview."""
        plan = self.proposed(arguments)
        if errors := errors_of(plan):
            raise PreviewError(errors)
        return plan

    def proposed(self, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Plan:
        """The plan of a preview, also of a failed one, with its errors; secrets are masked.

        Raises CommandError for a preview that failed without a message.
        """
        done = self._run(
            "preview", "--json", *self._configuration(), *arguments, "--stack", self.stack, environment=environment
        )
        try:
            plan: Any = json.loads(done.stdout)
        except ValueError:
            plan = {}
        complete = cast("Plan", {"config": {}, "steps": [], **plan})
        if done.returncode != 0 and not errors_of(complete):
            raise self._failure(done.stderr, f"`pulumi preview`: {done.stderr.strip() or f'code {done.returncode}'}")
        return complete

    def state(self) -> State:
        """The state as `pulumi stack export` prints it; secrets are encrypted."""
        return self.once("state", self._export)

    def _export(self) -> State:
        exported: State = self._json("stack", "export", "--stack", self.stack)
        # null before the second write of a new stack
        return {**exported, "deployment": exported["deployment"] or {}}

    def replace_state(self, state: State) -> None:
        """`pulumi stack import`: replace the state; the engine refuses an invalid one."""
        self._capture("stack", "import", "--stack", self.stack, standard_input=json.dumps(state))
        self.forget()

    def move(self, urn: str, stack: str) -> None:
        """`pulumi state move`: move a resource with its descendants to another stack of the backend."""
        directory = self.paths.engine if self.is_local else None
        stacks = ("--source", self.stack, "--dest", stack)
        self._capture("state", "move", *stacks, "--yes", urn, directory=directory)
        self.forget()

    def updates(self) -> Iterator[Update]:
        """The runs of `up` and `destroy` in the stack's history, newest first, without those of killed engines.

        Refreshes and imports in the history say nothing about the stack's completeness. Pages are read as needed.
        """
        options = ("--output", "json", "--page-size", str(_PAGE), "--stack", self.stack)
        for page in count(1):
            entries = self._json("stack", "history", "--page", str(page), *options)
            yield from (entry for entry in entries if entry["kind"] in ("update", "destroy"))
            if len(entries) < _PAGE:
                return

    def decryption_refusal(self) -> str | None:
        """Why the state's secrets cannot be decrypted, or the state cannot be read; None if they can.

        No secret reaches this process. Raises `StateDamagedError` for a truncated state.
        """
        command = ["pulumi", "stack", "export", "--show-secrets", "--stack", self.stack, "--non-interactive"]
        done = run(command, cwd=self.root, env=self.environment, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, text=True)
        if done.returncode == 0:
            return None
        if damaged := state_file.damage(done.stderr, self.stack, self.environment.get("PULUMI_BACKEND_URL")):
            raise damaged
        return done.stderr.strip() or f"code {done.returncode}"

    def damage(self) -> state_file.StateDamagedError | None:
        """The damage of the state's file in a file backend; None for a sound one, and in other backends."""
        return state_file.find(self.stack, self.environment.get("PULUMI_BACKEND_URL"))

    def backend(self) -> str:
        """The address of the stack's backend (`file://...`, `azblob://...`, `https://...`)."""
        url = self.environment.get("PULUMI_BACKEND_URL")
        return url or str(self._json("whoami", "--json")["url"])

    def written(self) -> dict[str, Any]:
        """The configuration in the stack's own file, without the project's defaults and without the keys' namespace."""
        return stack_file.own_values(self.document())

    def configured(self) -> dict[str, Any]:
        """As `written`, without values that are or have a secret."""
        return {key: value for key, value in self.written().items() if not configuration.has_secret(value)}

    def document(self) -> dict[str, Any]:
        """The document in the stack's file; raises CommandError if there is none, or it cannot be read."""
        if not self.file.exists():
            raise no_such_stack(self.stack, self.root)
        return document_in(self.file)

    def configuration_text(self) -> str:
        """The text of the stack's file; raises CommandError if there is none."""
        try:
            return self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise no_such_stack(self.stack, self.root) from None

    def configure(self, values: Mapping[str, str]) -> None:
        """Set values in the stack's file by path (`hostedClusters[0].name`); its comments stay."""
        options = [word for path, value in values.items() for word in ("--plaintext", f"{path}={value}")]
        if options:
            file = ("--config-file", str(self.file))
            self._capture("config", "set-all", "--path", *options, *file, "--stack", self.stack)
            self.forget()

    def resources(self) -> list[StateResource]:
        """The resources in the state; secrets are encrypted. A stack that does not exist is an error."""
        return resources_in(self.state())

    def resources_if_any(self) -> list[StateResource]:
        """As `resources`; none if there is no such stack. A listing of stacks would read the states of all."""
        try:
            return self.resources()
        except NoSuchStackError:
            return []

    def stacks(self) -> list[str]:
        """Names of all stacks of the project in the backend, in alphabetical order."""
        return sorted(self.last_writes())

    def last_writes(self) -> dict[str, str]:
        """When the state of each stack of the project in the backend was last written, by name; "" for never."""
        directory = self.paths.engine if self.is_local else None
        for remaining in reversed(range(_LISTINGS)):
            try:
                listed = self._json("stack", "ls", "--json", directory=directory)
                break
            except VanishedDraftError:
                if not remaining:
                    raise
        return {stack["name"]: stack.get("lastUpdate", "") for stack in listed}

    def _json(self, *arguments: str, directory: Path | None = None) -> Any:
        return json.loads(self._capture(*arguments, directory=directory))

    def _configuration(self) -> tuple[str, ...]:
        return ("--config-file", str(configuration.local_copy(self.file, self.paths))) if self.is_local else ()

    @contextmanager
    def _held(self) -> Iterator[tuple[str, ...]]:
        """The option for a copy of the configuration with `renewal: hold`.

        `pulumi preview --config` would write the key into the stack's file, and drop the others of `credentials`.
        """
        source = configuration.local_copy(self.file, self.paths) if self.is_local else self.file
        with TemporaryDirectory() as directory:
            held = Path(directory) / self.file.name
            try:
                shutil.copyfile(source, held)
            except FileNotFoundError:
                raise no_such_stack(self.stack, self.root) from None
            options = ("--config-file", str(held))
            key = ("--path", "credentials.renewal", "hold")
            self._capture("config", "set", *key, *options, "--stack", self.stack)
            yield options
