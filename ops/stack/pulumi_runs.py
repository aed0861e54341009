"""Runs `pulumi` for a stack, with its environment and plugins, and explains the failures."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ops.stack import state_file
from ops.stack.environment import ROOT, LocalPaths, is_local, local_paths, variables
from ops.stack.errors import CommandError, RunInterruptedError, message
from ops.stack.failures import failure_of
from ops.stack.lock import StartedEngines, StartingEngine, is_locked, settling
from ops.stack.plugins import provide_pinned
from ops.stack.stack_document import require_passphrase
from ops.stack.streaming import STANDSTILL, Deadline, Standstill, run_streaming

# Commands that write secrets into the state, or plan to. `destroy` does not.
_ENCRYPTING: Final = frozenset({"up", "preview", "import"})
_LOCKING: Final = frozenset({"up", "import", "destroy", "refresh"})
_WITH_PLUGINS: Final = frozenset({*_ENCRYPTING, "destroy", "refresh"})


@dataclass(frozen=True)
class PulumiRuns:
    """Runs `pulumi` for a stack of the project in `root`, which prints to `output`, a file descriptor.

    `beside` is another stack: this one is read in that stack's backend instead of its own. `caller` is the environment
    from which that of the commands is derived.

    The state is cached, because a process of `pulumi` takes about a second, and read again after a command that may
    have changed it. `forget` is for the changes of others.

    A failed run raises CommandError: `LockedError` if another engine has locked the stack, `StateDamagedError` if the
    state's file is truncated, `RunInterruptedError` after a signal or at the deadline.
    """

    stack: str
    root: Path = ROOT
    output: int = field(default_factory=sys.stdout.fileno)
    deadline: Deadline | None = None
    beside: str | None = None
    caller: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)
    _read: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def is_local(self) -> bool:
        return is_local(self.stack)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the stack's commands; raises CommandError as `variables` does."""
        return variables(self.beside or self.stack, self.caller, root=self.root)

    @property
    def paths(self) -> LocalPaths:
        return local_paths(self.caller)

    @property
    def engines(self) -> StartedEngines:
        """The engines that this machine has started for the stack."""
        return StartedEngines.of(self.stack, self.environment)

    @property
    def file(self) -> Path:
        return self.root / f"Pulumi.{self.stack}.yaml"

    def forget(self) -> None:
        self._read.clear()

    def _stream(
        self, *arguments: str, environment: Mapping[str, str] | None = None, standstill: Standstill | None = None
    ) -> None:
        self.forget()
        command = ["pulumi", *arguments, "--stack", self.stack]
        whole = {**self.environment, **(environment or {})}
        if not self.is_local and arguments[0] in _ENCRYPTING:
            require_passphrase(self.file, self.stack, whole)
        if self.deadline is not None and not self.deadline.left:
            raise RunInterruptedError(message("pulumi_runs.too-late", limit=self.deadline, command=arguments[0]))
        self._provide_plugins(arguments[0], whole)
        starting = StartingEngine(self.engines)
        ended = run_streaming(
            command,
            directory=self.root,
            environment=whole,
            output=self.output,
            deadline=self.deadline,
            standstill=standstill,
            started=starting.begin,
        )
        self._note_end(starting, ended.code, ended.errors, arguments[0])
        if ended.code != 0 and is_locked(ended.errors):
            raise self._failure(ended.errors, "", arguments[0])
        if ended.code < 0:
            settled = settling(self.stack, arguments[0])
            raise RunInterruptedError(f"`pulumi {arguments[0]}` was killed by signal {-ended.code}. {settled}")
        if ended.interrupted_by == STANDSTILL:
            raise CommandError(message("pulumi_runs.stood-still", command=arguments[0]))
        if ended.interrupted_by is not None:
            said = message("pulumi_runs.interrupted", by=ended.interrupted_by, command=arguments[0])
            raise RunInterruptedError(said, ended.interrupted_by)
        if ended.code != 0:
            said = f"`pulumi {arguments[0]}` ended with code {ended.code}; the reason is printed above"
            raise self._failure(ended.errors, said, arguments[0])

    def _failure(self, errors: str, said: str, command: str = "") -> CommandError:
        return failure_of(errors, said, self.stack, self.environment, command)

    def _note_end(self, starting: StartingEngine, code: int, errors: str, command: str) -> None:
        """Record the end of an engine, and keep what it wrote. A failed one may have left its lock behind."""
        state_file.keep(self.stack, self.environment.get("PULUMI_BACKEND_URL"))
        starting.end(may_have_lock=code != 0 and not is_locked(errors))
        if code == 0 and command in _LOCKING:
            self.engines.forget()

    def _capture(self, *arguments: str, directory: Path | None = None, standard_input: str = "") -> str:
        finished = self._run(*arguments, directory=directory, standard_input=standard_input)
        if finished.returncode != 0:
            message = f"`pulumi {' '.join(arguments)}`: {finished.stderr.strip() or f'code {finished.returncode}'}"
            raise self._failure(finished.stderr, message)
        return finished.stdout

    def _run(
        self,
        *arguments: str,
        directory: Path | None = None,
        standard_input: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run without a terminal. Raises only for a killed engine."""
        whole = {**self.environment, **(environment or {})}
        self._provide_plugins(arguments[0], whole)
        command = ["pulumi", *arguments, "--non-interactive"]
        if arguments[0] == "state" or tuple(arguments[:2]) == ("stack", "import"):
            done = self._run_recorded(command, directory or self.root, whole, standard_input)
        else:
            done = subprocess.run(
                command, cwd=directory or self.root, env=whole, input=standard_input, capture_output=True, text=True
            )
        if done.returncode < 0:
            name = " ".join(argument for argument in arguments[:2] if not argument.startswith("-"))
            said = message("pulumi_runs.killed", command=name, signal=-done.returncode, stack=self.stack)
            raise RunInterruptedError(said)
        return done

    def _run_recorded(
        self, command: Sequence[str], directory: Path, environment: Mapping[str, str], standard_input: str
    ) -> subprocess.CompletedProcess[str]:
        starting, pipe = StartingEngine(self.engines), subprocess.PIPE
        with subprocess.Popen(
            command, cwd=directory, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as process:
            starting.begin(process.pid)
            output, errors = process.communicate(standard_input)
        self._note_end(starting, process.returncode, errors, command[1])
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def _provide_plugins(self, command: str, environment: Mapping[str, str]) -> None:
        """Install the plugins of a stack on Azure; `prepare` installs those of local stacks."""
        if not self.is_local and command in _WITH_PLUGINS:
            provide_pinned(self.stack, environment)
