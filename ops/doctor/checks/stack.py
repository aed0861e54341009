"""Whether engine and backend have the whole stack, unlocked, and its deployer has access."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from identity.credentials.symptom import az_login
from ops.doctor.model.check import Check, Fault, Stage, WholeStack, of_stack
from ops.stack.environment import is_local
from ops.world.reader import AZURE, CLUSTER
from ops.world.seen import NotReadError, Part, SeenLock, StackWorld, Unread, known

# The engine's own error may list every sign-in that it has tried.
_LONGEST_ERROR: Final = 800


def _find_unreadable_state(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
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


def _find_lock(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
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


def _find_abandoned_lock(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether a killed run has left its lock, and the stack incomplete."""
    for lock in known(world.locks):
        if lock.runs is False:
            yield Fault(
                evidence=f"locked for {_age(world, lock)} by {lock.owner}, which was killed",
                fix=world.command("recover"),
            )


ABANDONED_LOCK = of_stack(Stage.BACKEND, "abandoned-lock", (Part.LOCKS,), _find_abandoned_lock)


def _find_pending_operations(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether a killed engine left pending operations in the state."""
    if pending := known(world.state).pending:
        yield Fault(evidence=f"interrupted operations: {', '.join(pending)}", fix=world.command("recover"))


PENDING_OPERATIONS = of_stack(Stage.BACKEND, "pending-operations", (Part.STATE,), _find_pending_operations)


def _find_last_run(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether a run of all resources has completed since the last one that failed after a change."""
    run = known(world.last_run)
    if run is not None and run.has_failed:
        command = "up" if run.kind == "update" else run.kind
        yield Fault(
            evidence=f"`pulumi {command}`, begun at {run.started}, failed, and none of all resources has completed "
            "since: the stack may be incomplete",
            fix=world.command("down" if run.kind == "destroy" else "up"),
        )


LAST_RUN = of_stack(Stage.BACKEND, "last-run", (Part.HISTORY,), _find_last_run)


def _find_decryption(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the stack's secrets provider decrypts the secrets in its state."""
    if (refusal := known(world.decryption)) is not None:
        yield Fault(
            evidence=refusal,
            fix="set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the stack's own passphrase; with a "
            "key, check that `secretsprovider` and `encryptedkey` of the stack's file are those of the state",
        )


def _find_missing_permissions(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the deployer has its permissions on the management cluster."""
    access = known(world.access)
    if access.missing and access.is_read_only:
        raise NotReadError(
            f"{access.who} may only read {access.server}, so that the deployer's permissions are not known; run "
            f"{world.command('doctor', '--stage', 'access')} as the deployer"
        )
    if access.missing:
        yield Fault(evidence=f"{access.who} at {access.server} lacks {'; '.join(access.missing)}", fix=access.hint)


def _find_sign_in(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the deployer can sign in to Azure now."""
    if (refusal := known(world.sign_in)) is not None:
        fix = f"{world.command('up')} starts the local cloud again" if is_local(world.stack) else az_login(refusal)
        yield Fault(evidence=refusal, fix=fix)


SIGN_IN = of_stack(Stage.ACCESS, "azure", (Part.SIGN_IN,), _find_sign_in, hides=CLUSTER | AZURE)


CHECKS: Final[tuple[Check, ...]] = (
    of_stack(Stage.ENGINE, "state", (Part.STATE, Part.CONFIGURATION), _find_unreadable_state),
    of_stack(Stage.BACKEND, "lock", (Part.LOCKS,), _find_lock),
    ABANDONED_LOCK,
    PENDING_OPERATIONS,
    LAST_RUN,
    of_stack(Stage.BACKEND, "decryption", (Part.DECRYPTION,), _find_decryption),
    SIGN_IN,
    of_stack(
        Stage.ACCESS,
        "permissions",
        (Part.ACCESS, Part.CONFIGURATION),
        _find_missing_permissions,
        hides=(Part.CONTROL_PLANES, Part.REPORTS),
    ),
)
