"""The steps that make an interrupted stack one that `up` can go on with; each may be repeated.

Every function raises CommandError if the engine, Azure or the management cluster refuses or does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final

from identity import resource_types
from identity.clouds import LocalEnvironment
from ops.access.azure import deployer
from ops.recovery import orphans, withdrawn
from ops.recovery.finders import Finders
from ops.recovery.orphans import Orphan
from ops.renewal.renewable import RenewedType
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, RunInterruptedError
from ops.stack.lock import LockedError
from ops.stack.state import Plan, State, StateResource, name_of, outputs_in, without
from ops.world.kubernetes_objects import management_cluster
from ops.world.whose import looking

_AT_ONCE: Final = 10  # connections that one transport keeps open (requests, HTTPAdapter)
_KUBERNETES: Final = "kubernetes:"
_KUBERNETES_PROVIDER: Final = "pulumi:providers:kubernetes"


def unlock_and_refresh(
    engine: Engine, local: LocalEnvironment | None, report: Callable[[str], None], *, owner_is_gone: bool = False
) -> State:
    """Refresh the state, and unlock it first if the process that locked it does not run any more.

    A state that is cut short is that of the newest copy again, before; without one it is empty, if no run has ended.

    Raises LockedError if it does run, or may, and CommandError if the state is empty now and a run may have made
    something. `owner_is_gone`: a person knows that none runs on another machine either. `report` prints a line for the
    user. Returns the state after the first refresh.
    """
    if damaged := engine.damage():
        report(damaged.put_back())
        if damaged.copy is None:
            engine.create()
        else:
            report(f"  {orphans.certificates_since(engine.stack)}")
        if damaged.made is not None:
            raise CommandError(damaged.made)
    try:
        _refresh(engine, local, report)
    except LockedError as locked:
        if not (locked.is_abandoned or (owner_is_gone and locked.is_unseen)):
            raise
        report(f"unlocking the stack {engine.stack}: the process that locked it does not run any more")
        engine.unlock()
        _refresh(engine, local, report)
    state = engine.state()
    unmarked = orphans.unmarked(state)
    if unmarked != state:
        engine.replace_state(unmarked)
        _refresh(engine, local, report)
    return state


def _refresh(engine: Engine, local: LocalEnvironment | None, report: Callable[[str], None]) -> None:
    """Refresh, also after applications were deleted, whose certificates azuread then fails to read, or after another
    management cluster got the name: the provider in the state asks at the address of the one before.
    """
    try:
        engine.refresh()
    except (LockedError, RunInterruptedError):
        raise
    except CommandError:
        lost = _credentials_of_deleted_applications(engine, local)
        providers = [each["urn"] for each in engine.resources() if each["type"] == _KUBERNETES_PROVIDER]
        if not lost and not providers:
            raise
        if not lost:
            report("taking the address of the management cluster from Azure, and refreshing once more:")
            targets = [argument for urn in providers for argument in ("--target", urn)]
            engine.up(("--yes", "--skip-preview", *targets))
            engine.refresh()
            return
        report("removing the certificates of deleted applications from the state:")
        for urn in sorted(lost):
            report(f"  {name_of(urn)}")
        engine.replace_state(without(engine.state(), lost))
        engine.refresh()


def _credentials_of_deleted_applications(engine: Engine, local: LocalEnvironment | None) -> set[str]:
    """URNs of the registrations that were deleted with their applications, and of what belongs to these alone.

    The schedules with their certificates are among them: another application has another client id, and loaders take a
    document as new only if its certificate is new.
    """
    resources = engine.resources()
    registrations = [each for each in resources if each["type"] == resource_types.REGISTERED_CERTIFICATE]
    if not registrations:
        return set()
    with deployer(engine.stack, engine.configured(), local) as clients:
        paths = {each["inputs"]["applicationId"] for each in registrations}
        gone = {path for path in paths if clients.directory_object(path) is None}
    parents = {each["parent"] for each in registrations if each["inputs"]["applicationId"] in gone}
    return {
        each["urn"]
        for each in resources
        if each.get("parent") in parents
        and (each["type"] == resource_types.REGISTERED_CERTIFICATE or each["type"].startswith(resource_types.OWN))
    }


def withdrawn_since(engine: Engine, local: LocalEnvironment | None, resources: Sequence[StateResource]) -> list[str]:
    """What to say of the certificates in a state that were taken out of use since it was written."""
    if not any(each["type"] == RenewedType.SCHEDULE for each in resources):
        return []
    with deployer(engine.stack, engine.configured(), local) as clients:
        return withdrawn.in_words(withdrawn.withdrawn(clients, resources))


def find_orphans(engine: Engine, local: LocalEnvironment | None, report: Callable[[str], None]) -> list[Orphan]:
    """What exists but is missing in the state; `local` has the endpoints of the local cloud, for a local stack.

    `report` prints a line for the user.
    """
    plan, state = _plan(engine, report), engine.resources()
    # An `up` in between may have made twins of the applications; their finder raises CommandError then.
    applications = [each for each in state if each["type"] == resource_types.APPLICATION]
    asked = [*orphans.candidates(plan, state), *applications]
    with (
        _finders(engine, _configuration(plan), local, state, asked) as finders,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        answers = list(pool.map(lambda each: finders.find(each["type"], each["inputs"]), asked))
    found = [Orphan(each, id) for each, id in zip(asked, answers, strict=True) if id is not None]
    return list(_free(engine, local, found, report)) if found else []


def _free(
    engine: Engine, local: LocalEnvironment | None, found: Sequence[Orphan], report: Callable[[str], None]
) -> Iterator[Orphan]:
    """Those that are not another stack's; a line names each of the others."""
    with looking(engine, local) as whose:
        for each in found:
            principal = str(each.resource["inputs"].get("principalId", ""))
            if why := whose.objection(each.resource["type"], each.id, principal):
                report(f"left alone: {each.name}: {each.id}: {why}")
            else:
                yield each


def enter(engine: Engine, found: Sequence[Orphan]) -> None:
    """Write the orphans into the refreshed state."""
    if found:
        engine.replace_state(orphans.settled(engine.state(), found))


def _plan(engine: Engine, report: Callable[[str], None]) -> Plan:
    """What the program would do; if a schedule refuses to plan another certificate yet, what it would do without them.

    A schedule does so for hours after a `down` that was killed between the deletions of a secret and of its schedule.
    What a killed renewal may have registered besides goes with its application.
    """
    try:
        return engine.planned()
    except CommandError as refused:
        if RenewedType.SCHEDULE not in str(refused):
            raise
        schedules = [each["urn"] for each in engine.resources() if each["type"] == RenewedType.SCHEDULE]
        plan = engine.planned([word for urn in schedules for word in ("--exclude", urn)])  # raises what else is wrong
        report(f"no certificate can be planned, so none is looked for: {refused}")
        return plan


def _configuration(plan: Plan) -> dict[str, str]:
    return {key.partition(":")[2]: value for key, value in plan["config"].items()}


@contextmanager
def _finders(
    engine: Engine,
    configuration: Mapping[str, str],
    local: LocalEnvironment | None,
    state: Sequence[StateResource],
    asked: Sequence[StateResource],
) -> Iterator[Finders]:
    """Finders for what the stack's configuration names; with the cluster only if an object of it is asked for."""
    with ExitStack() as stack:
        clients = stack.enter_context(deployer(engine.stack, configuration, local))
        objects = None
        if any(each["type"].startswith(_KUBERNETES) for each in asked):
            objects = stack.enter_context(management_cluster(engine))
        vault_id = outputs_in(state).get("keyVaultId")
        yield Finders(clients, objects, configuration["subscriptionId"], orphans.ids(state), vault_id)
