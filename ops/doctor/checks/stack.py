"""Whether engine and backend have the whole stack, unlocked, and its deployer has access."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from identity.symptoms import az_login
from ops.doctor.checks.check import Fault, Stage, fault, of_stack
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
        yield fault(world, "no state", why=textwrap.shorten(world.state.why, _LONGEST_ERROR, placeholder=" ..."))


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
        if lock.runs is not False:
            yield fault(world, "locked" if lock.runs else "locked elsewhere", age=_age(world, lock), owner=lock.owner)


@of_stack(Stage.BACKEND, Part.LOCKS)
def abandoned_lock(world: StackWorld) -> Iterator[Fault]:
    """Whether a killed run has left its lock, and the stack incomplete."""
    for lock in known(world.locks):
        if lock.runs is False:
            yield fault(world, "abandoned lock", age=_age(world, lock), owner=lock.owner)


@of_stack(Stage.BACKEND, Part.STATE)
def pending_operations(world: StackWorld) -> Iterator[Fault]:
    """Whether a killed engine left pending operations in the state."""
    if pending := known(world.state).pending:
        yield fault(world, "pending operations", pending=", ".join(pending))


@of_stack(Stage.BACKEND, Part.HISTORY)
def last_run(world: StackWorld) -> Iterator[Fault]:
    """Whether a run of all resources has completed since the last one that failed after a change."""
    run = known(world.last_run)
    if run is not None and run.has_failed:
        fix = world.command("down" if run.kind == "destroy" else "up")
        command = "up" if run.kind == "update" else run.kind
        yield fault(world, "failed run", command=command, started=run.started, fix=fix)


@of_stack(Stage.BACKEND, Part.DECRYPTION)
def decryption(world: StackWorld) -> Iterator[Fault]:
    """Whether the stack's secrets provider decrypts the secrets in its state."""
    if (refusal := known(world.decryption)) is not None:
        yield fault(world, "no decryption", refusal=refusal)


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
