"""Whether engine and backend have the whole stack, unlocked, and its deployer has access."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from identity.credentials.symptom import az_login
from ops.doctor.checks.check import Fault, Stage, of_stack
from ops.stack.environment import is_local
from ops.world.reader import AZURE, CLUSTER
from ops.world.seen import NotReadError, Part, SeenLock, StackWorld, Unread, known

# The engine's own error may list every sign-in that it has tried.
_LONGEST_ERROR: Final = 800


@of_stack(Stage.ENGINE, Part.STATE, Part.CONFIGURATION)
def state(world: StackWorld) -> Iterator[Fault]:
    """Whether the engine can read the stack's state."""
    if isinstance(world.state, Unread):
        if not isinstance(world.configuration, Unread) and world.configuration.prevents_sign_in:
            raise NotReadError(world.state.why)
        why = textwrap.shorten(world.state.why, _LONGEST_ERROR, placeholder=" ...")
        # The commands' errors name the remedy (`ops/stack/failures.py`, `ops/stack/state_file.py`).
        yield Fault(evidence=why, fix="correct what the error names, then run the doctor again")


def _age(world: StackWorld, lock: SeenLock) -> str:
    """The age of a lock, such as `47 minutes`, in the largest unit of which there are two."""
    seconds = max(int((world.now - lock.since).total_seconds()), 0)
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} seconds"


@of_stack(Stage.BACKEND, Part.LOCKS)
def lock(world: StackWorld) -> Iterator[Fault]:
    """Whether a run holds the stack's lock, and since when."""
    for lock in known(world.locks):
        if lock.runs:
            state, fix = "which still runs", f"wait until it ends, or interrupt it (Ctrl-C), then {world.command('up')}"
        elif lock.runs is None:
            state = "which this machine cannot see"
            fix = f"wait until it ends; if you are sure that it has ended, {world.command('recover', '--unlock')}"
        else:
            continue
        yield Fault(evidence=f"locked for {_age(world, lock)} by {lock.owner}, {state}", fix=fix)


@of_stack(Stage.BACKEND, Part.LOCKS)
def abandoned_lock(world: StackWorld) -> Iterator[Fault]:
    """Whether a killed run has left its lock, and the stack incomplete."""
    for lock in known(world.locks):
        if lock.runs is False:
            yield Fault(
                evidence=f"locked for {_age(world, lock)} by {lock.owner}, which was killed",
                fix=world.command("recover"),
            )


@of_stack(Stage.BACKEND, Part.STATE)
def pending_operations(world: StackWorld) -> Iterator[Fault]:
    """Whether a killed engine left pending operations in the state."""
    if pending := known(world.state).pending:
        yield Fault(evidence=f"interrupted operations: {', '.join(pending)}", fix=world.command("recover"))


@of_stack(Stage.BACKEND, Part.HISTORY)
def last_run(world: StackWorld) -> Iterator[Fault]:
    """Whether a run of all resources has completed since the last one that failed after a change."""
    run = known(world.last_run)
    if run is not None and run.has_failed:
        command = "up" if run.kind == "update" else run.kind
        yield Fault(
            evidence=f"`pulumi {command}`, begun at {run.started}, failed, and none of all resources has completed "
            "since: the stack may be incomplete",
            fix=world.command("down" if run.kind == "destroy" else "up"),
        )


@of_stack(Stage.BACKEND, Part.DECRYPTION)
def decryption(world: StackWorld) -> Iterator[Fault]:
    """Whether the stack's secrets provider decrypts the secrets in its state."""
    if (refusal := known(world.decryption)) is not None:
        yield Fault(
            evidence=refusal,
            fix="set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the stack's own passphrase; with a "
            "key, check that `secretsprovider` and `encryptedkey` of the stack's file are those of the state",
        )


@of_stack(Stage.ACCESS, Part.SIGN_IN, hides=CLUSTER | AZURE)
def azure(world: StackWorld) -> Iterator[Fault]:
    """Whether the deployer can sign in to Azure now."""
    if (refusal := known(world.sign_in)) is not None:
        fix = f"{world.command('up')} starts the local cloud again" if is_local(world.stack) else az_login(refusal)
        yield Fault(evidence=refusal, fix=fix)


@of_stack(Stage.ACCESS, Part.ACCESS, Part.CONFIGURATION, hides={Part.CONTROL_PLANES, Part.REPORTS})
def permissions(world: StackWorld) -> Iterator[Fault]:
    """Whether the deployer has its permissions on the management cluster."""
    access = known(world.access)
    if access.missing and access.is_read_only:
        raise NotReadError(
            f"{access.who} may only read {access.server}, so that the deployer's permissions are not known; run "
            f"{world.command('doctor', '--stage', 'access')} as the deployer"
        )
    if access.missing:
        yield Fault(evidence=f"{access.who} at {access.server} lacks {'; '.join(access.missing)}", fix=access.hint)
