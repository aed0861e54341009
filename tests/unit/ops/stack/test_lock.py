"""Who holds a stack's lock, whether that process still runs, and what the error tells the user to do."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.stack.lock import LockedError, Owner, StartedEngine, StartedEngines, is_locked, owners, runs, stack_of

HERE = socket.gethostname()
# The errors of Pulumi 3.259 (pkg/backend/diy/lock.go) and of Pulumi Cloud.
HEAD = (
    "error: the stack is currently locked by {n} lock(s). Either wait for the other process(es) to end or delete the "
    "lock file with `pulumi cancel`."
)
LINE = "\n  file:///state/.pulumi/locks/organization/idstack/local/6f0c.json?metadata=skip: created by {owner}"
CONFLICT = (
    "error: [409] Conflict: Another update is currently in progress.\n"
    "To learn more about possible reasons and resolution, visit https://www.pulumi.com/docs/troubleshooting/#conflict"
)


def errors(*found: Owner) -> str:
    """The engine's standard error."""
    lines = [LINE.format(owner=f"{holder.user}@{holder.host} (pid {holder.pid}) at {holder.since}") for holder in found]
    return HEAD.format(n=len(found)) + "".join(lines) + "\n"


_WORD = st.text(st.characters(categories=["L", "N", "Pd"], include_characters="._\\"), min_size=1)
_OWNERS = st.builds(
    Owner,
    user=st.lists(_WORD, min_size=1).map(" ".join),  # a Windows account may have spaces
    host=_WORD,
    pid=st.integers(1, 2**22),
    since=st.datetimes().map(lambda date: date.strftime("%Y-%m-%dT%H:%M:%SZ")),
)


@given(st.lists(_OWNERS, min_size=1, max_size=3))
def test_every_owner_that_the_engine_names_is_read(found: list[Owner]) -> None:
    assert is_locked(errors(*found))
    assert owners(errors(*found)) == found
    assert stack_of(errors(*found)) == "local"


# The engine's words for a state that is cut off, which no unlocking fixes.
STATE = "error: getting snapshot: failed to load checkpoint: place 1: unexpected end of JSON input"


@pytest.mark.parametrize("printed", ["", "error: update failed", "error: created by somebody", STATE])
def test_another_failure_is_no_lock(printed: str) -> None:
    assert not is_locked(printed)
    assert owners(printed) == []


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the engine's name."""
    executable = tmp_path / "pulumi"
    shutil.copy("/bin/sleep", executable)
    process = subprocess.Popen([executable, "600"])
    yield process
    process.kill()
    process.wait()


def owner(pid: int, host: str = HERE) -> Owner:
    return Owner("root", host, pid, "2026-11-21T17:13:57Z")


DEAD = owner(2**22 + 1)
ENDED = StartedEngine(
    "dev", DEAD.pid, "1", "2026-11-21T17:13:56Z", "2026-11-21T17:14:20Z", HERE, "boot", "namespace", "machine"
)


def test_an_engine_runs_until_it_is_killed(engine: subprocess.Popen[bytes]) -> None:
    assert runs(engine.pid)
    engine.kill()
    os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
    assert not runs(engine.pid), "a zombie, which was not waited for yet"
    engine.wait()
    assert not runs(engine.pid)
    assert not runs(os.getpid()), "another program that got the id"
    assert not runs(2**22 + 1), "more than Linux gives"


@pytest.fixture
def engines(tmp_path: Path) -> StartedEngines:
    """The engines that this machine has started for the stack dev: DEAD."""
    found = StartedEngines(tmp_path / "engines", "dev")
    found.write(ENDED)
    return found


@pytest.fixture
def locked(engines: StartedEngines) -> Callable[..., LockedError]:
    def lock(*found: Owner, stack: str = "dev", command: str = "up") -> LockedError:
        return LockedError(found, replace(engines, stack=stack), command)

    return lock


LockedBy: TypeAlias = Callable[..., LockedError]


def test_a_living_owner_is_named_and_waited_for(engine: subprocess.Popen[bytes], locked: LockedBy) -> None:
    lock = locked(owner(engine.pid), DEAD)
    assert not lock.is_abandoned
    assert not lock.is_unseen
    assert str(lock) == (
        f"the stack dev is locked by root@{HERE} (pid {engine.pid}, since 2026-11-21T17:13:57Z), which still runs; "
        "wait until it ends"
    )


def test_a_dead_owner_is_named_with_the_command_that_goes_on(locked: LockedBy) -> None:
    lock = locked(DEAD)
    assert lock.is_abandoned
    assert locked(owner(DEAD.pid, "laptop.at-home"), stack="local").is_abandoned, "its machine is this one by any name"
    assert str(locked(DEAD, command="destroy")).endswith(
        "`.venv/bin/idstack recover --stack dev --no-up` unlocks the stack and settles interrupted operations; then "
        "run `.venv/bin/idstack down --stack dev` again"
    )
    assert str(lock).startswith(f"the stack dev is still locked by {DEAD}, which was killed. ")
    assert str(lock).endswith(
        "`.venv/bin/idstack recover --stack dev` unlocks the stack and settles interrupted operations, and runs `up`"
    )


def test_an_owner_on_another_machine_is_left_to_a_person(locked: LockedBy) -> None:
    elsewhere = owner(1, "runner-7")
    lock = locked(elsewhere, DEAD)
    assert not lock.is_abandoned
    assert f"locked by {elsewhere}, which this machine cannot see" in str(lock)
    assert (
        "If you are sure that it has ended, `.venv/bin/idstack recover --stack dev --unlock`, or on GitHub the"
        in str(lock)
    )
    assert "`.venv/bin/idstack recover --stack dev --no-up --unlock`" in str(locked(elsewhere, command="destroy"))


def test_a_lock_of_pulumi_cloud_names_neither_owner_nor_stack_and_is_left_to_a_person(locked: LockedBy) -> None:
    assert is_locked(CONFLICT)
    assert (owners(CONFLICT), stack_of(CONFLICT)) == ([], None)
    assert not locked().is_abandoned
    assert "the stack dev is locked by another update, which this machine cannot see" in str(locked())


def test_a_run_that_this_machine_has_not_recorded_is_left_to_a_person(locked: LockedBy) -> None:
    """Another machine may have this one's name, and any process id."""
    lock = locked(owner(DEAD.pid - 1))

    assert not lock.is_abandoned
    assert lock.is_unseen
    assert "(pid 4194304, since 2026-11-21T17:13:57Z), which idstack on this machine has no record of" in str(lock)
    assert "If you are sure that it has ended, `.venv/bin/idstack recover --stack dev --unlock`" in str(lock)


@pytest.mark.parametrize(
    "since", ["2026-11-21T17:13:50Z", "2026-11-21T17:14:30Z", "yesterday"], ids=["before", "after", "no time"]
)
def test_a_record_is_of_a_lock_only_if_that_was_taken_while_it_ran(locked: LockedBy, since: str) -> None:
    assert locked(Owner("root", HERE, DEAD.pid, since)).is_unseen
