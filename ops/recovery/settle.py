"""The steps from a stack that was interrupted to one that `up` can go on with; each may be repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from identity.access.arm_environment import credential
from identity.clouds import CLOUDS, LocalEnvironment, local_cloud
from ops.engine import Engine
from ops.environment import variables
from ops.lock import Locked
from ops.recovery import cluster, forgotten
from ops.recovery.azure import Azure
from ops.recovery.finders import APPLICATION, REGISTRATION, Finders
from ops.recovery.forgotten import Found
from ops.trouble import Trouble

_AT_ONCE: Final = 16
_OWN: Final = "idstack:index:"


def unlock_and_refresh(engine: Engine, local: LocalEnvironment | None, say: Callable[[str], None]) -> None:
    """Bring the state up to date, unlocking it if nobody holds the lock any more; raises Locked if somebody does."""
    try:
        _refresh(engine, local, say)
    except Locked as locked:
        if not locked.is_abandoned:
            raise
        say(f"unlocking the stack {engine.stack}: whoever locked it runs no more")
        engine.unlock()
        _refresh(engine, local, say)
    state = engine.state()
    unmarked = forgotten.unmarked(state)
    if unmarked != state:
        engine.replace_state(unmarked)
        _refresh(engine, local, say)


def _refresh(engine: Engine, local: LocalEnvironment | None, say: Callable[[str], None]) -> None:
    """A refresh, also after applications were deleted: azuread then fails to read their certificates."""
    try:
        engine.refresh()
    except Locked:
        raise
    except Trouble:
        lost = _credentials_of_deleted_applications(engine, local)
        if not lost:
            raise
        say("forgetting the certificates of applications that were deleted:")
        for urn in sorted(lost):
            say(f"  {urn.rpartition('::')[2]}")
        engine.replace_state(forgotten.without(engine.state(), lost))
        engine.refresh()


def _credentials_of_deleted_applications(engine: Engine, local: LocalEnvironment | None) -> set[str]:
    """URNs of the registrations that went with their applications, and of what only belongs to these.

    The schedules with their certificates are among them: another application has another client id, and loaders take a
    document for new only if its certificate is.
    """
    resources = engine.resources()
    registrations = [each for each in resources if each["type"] == REGISTRATION]
    if not registrations:
        return set()
    with azure(engine, _configuration(engine.planned()), local) as clients:
        paths = {each["inputs"]["applicationId"] for each in registrations}
        gone = {path for path in paths if clients.directory_object(path) is None}
    parents = {each["parent"] for each in registrations if each["inputs"]["applicationId"] in gone}
    return {
        each["urn"]
        for each in resources
        if each.get("parent") in parents and (each["type"] == REGISTRATION or each["type"].startswith(_OWN))
    }


def find_forgotten(engine: Engine, local: LocalEnvironment | None) -> list[Found]:
    """What exists and is missing in the state; `local` is where the local cloud answers, for its stack."""
    plan, state = engine.planned(), engine.resources()
    # The applications may have got twins by an `up` in between; their finder then says so.
    applications = [each for each in state if each["type"] == APPLICATION]
    asked = [*forgotten.candidates(plan, state), *applications]
    with _finders(engine, _configuration(plan), local, state) as finders, ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda each: finders.find(each["type"], each["inputs"]), asked)
        return [Found(each, found) for each, found in zip(asked, answers, strict=True) if found is not None]


def enter(engine: Engine, found: Sequence[Found]) -> None:
    """Write what was found into the refreshed state."""
    if found:
        engine.replace_state(forgotten.settled(engine.state(), found))


def _configuration(plan: Mapping[str, Any]) -> dict[str, str]:
    return {key.partition(":")[2]: value for key, value in plan["config"].items()}


@contextmanager
def azure(engine: Engine, configuration: Mapping[str, Any], local: LocalEnvironment | None) -> Iterator[Azure]:
    """The cloud and tenant that the stack's configuration names, as its deployer."""
    cloud = local_cloud(local) if local else CLOUDS[configuration["cloud"]]
    options: dict[str, Any] = {"authority": cloud.authority_host}
    if local:
        options |= {"connection_verify": local.ca_file, "disable_instance_discovery": True}
    deployer = credential(configuration["tenantId"], variables(engine.stack), **options)
    with Azure(cloud, deployer, local.ca_file if local else None) as clients:
        yield clients


@contextmanager
def _finders(
    engine: Engine, configuration: Mapping[str, str], local: LocalEnvironment | None, state: Sequence[Mapping[str, Any]]
) -> Iterator[Finders]:
    """Finders for the places that the stack's configuration names."""
    management = json.loads(configuration.get("managementCluster") or "{}")
    kubeconfig = management.get("kubeconfig") or (local.kubeconfig if local else None)
    with ExitStack() as stack:
        clients = stack.enter_context(azure(engine, configuration, local))
        objects = None
        if kubeconfig and configuration.get("clusterSide") == "stack":
            path = engine.root / Path(kubeconfig).expanduser()
            objects = stack.enter_context(cluster.connected(path, management.get("context")))
        yield Finders(clients, objects, configuration["subscriptionId"], forgotten.ids(state))
