"""The steps that prepare an interrupted stack for the next `up`; each may be repeated.

Every function raises CommandError if the engine refuses, and AccessError if Azure or the management cluster does, or
does not answer.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final

from identity import resource_types
from identity.azure.errors import AzureRefusedError
from identity.azure.registered_certificates import registered_at
from identity.naming import parse_arm_id, stack_tag
from identity.plugin_schema import StackOwnerOutputs
from identity.settings.schema.problems import NAMESPACE
from ops.access.clients import deployer, management_cluster
from ops.recovery import orphans
from ops.recovery.orphans import Finders, Orphan
from ops.renewal.guard import RenewedType
from ops.stack.engine import Engine, PreviewError
from ops.stack.errors import CommandError, RunInterruptedError, message
from ops.stack.existing import by_reason
from ops.stack.failures import NoSuchStackError
from ops.stack.lock import LockedError
from ops.stack.state import Plan, State, StateResource, name_of, outputs_in, resources_in, with_resources, without
from ops.world.adoption_guard import AdoptionGuard, adoption_guard, owner_of_application
from ops.world.ownership import Ownership
from ops.world.stacks import Contents, Stacks

_MAX_WORKERS: Final = 10  # connections that one transport keeps open (requests, HTTPAdapter)
_PAUSES: Final = (0, 1, 2, 4, 8, 16, 32, 60)  # seconds, between two looks at recovered secrets
_KUBERNETES_PROVIDER: Final = f"{resource_types.PROVIDER}kubernetes"


def unlock_and_refresh(engine: Engine, report: Callable[[str], None], *, owner_is_gone: bool = False) -> State:
    """Refresh the state, and unlock it first if the process that locked it has ended.

    A truncated state is first replaced by its newest copy; without one it is empty, if no run has ended. Returns the
    state after the first refresh.

    Raises LockedError if the process runs or may run, and CommandError if the state is empty now and a run may have
    created resources. `owner_is_gone`: a person is sure that no process on another machine runs either. `report` prints
    a line for the user.
    """
    if damaged := engine.damage():
        report(damaged.put_back())
        if damaged.copy is None:
            engine.create()
        else:
            report(f"  {message('settle.certificates', stack=engine.stack)}")
        if damaged.made is not None:
            raise CommandError(damaged.made)
    try:
        _refresh(engine, report)
    except LockedError as locked:
        if not (locked.is_abandoned or (owner_is_gone and locked.is_unseen)):
            raise
        report(f"unlocking the stack {engine.stack}: the process that locked it has ended")
        engine.unlock()
        _refresh(engine, report)
    state = engine.state()
    unmarked = orphans.unmarked(state)
    if unmarked != state:
        engine.replace_state(unmarked)
        _refresh(engine, report)
    return state


def _refresh(engine: Engine, report: Callable[[str], None]) -> None:
    """Refresh, also after applications were deleted, whose certificates azuread fails to read, or after the management
    cluster was replaced: the provider in the state has the address of the old one.
    """
    try:
        engine.refresh()
    except (LockedError, NoSuchStackError, RunInterruptedError):
        raise
    except CommandError:
        lost = _credentials_of_deleted_applications(engine)
        providers = [resource["urn"] for resource in engine.resources() if resource["type"] == _KUBERNETES_PROVIDER]
        if not lost and not providers:
            raise
        if not lost:
            report("reading the address of the management cluster from Azure, and refreshing again:")
            targets = [argument for urn in providers for argument in ("--target", urn)]
            engine.up(("--yes", "--skip-preview", *targets))
            engine.refresh()
            return
        report("removing what deleted applications had from the state, but for their certificates:")
        for urn in sorted(lost):
            report(f"  {name_of(urn)}")
        engine.replace_state(without(engine.state(), lost))
        engine.refresh()


def _credentials_of_deleted_applications(engine: Engine) -> set[str]:
    """URNs of the registrations that were deleted with their applications, and of resources that only these use.

    They include the schedules, as a new application has a new client id. Certificates stay: if the application is
    restored, the vault's goes on, and another one of its slot would begin at the same second, so that no pod loads it.
    """
    resources = engine.resources()
    registrations = [resource for resource in resources if resource["type"] == resource_types.REGISTERED_CERTIFICATE]
    if not registrations:
        return set()
    with deployer(engine) as clients:
        paths = {registration["inputs"]["applicationId"] for registration in registrations}
        gone = {path for path in paths if clients.directory_object(path) is None}
    parents = {
        registration["parent"] for registration in registrations if registration["inputs"]["applicationId"] in gone
    }
    return {
        resource["urn"]
        for resource in resources
        if resource.get("parent") in parents
        and (
            resource["type"] == RenewedType.REGISTRATION
            or (resource["type"].startswith(resource_types.OWN) and resource["type"] != RenewedType.CERTIFICATE)
        )
    }


def withdrawn_since(engine: Engine, resources: Sequence[StateResource]) -> list[str]:
    """A line for each certificate of a state that is not registered at its application, below a heading.

    They include those that a killed run had not registered yet.
    """
    certificates = [one for one in resources if one["type"] == RenewedType.CERTIFICATE and one.get("outputs")]
    if not certificates:
        return []
    paths = {certificate["inputs"]["applicationId"] for certificate in certificates}
    with deployer(engine) as azure:
        registered = {path: registered_at(azure, path) for path in paths}
    lines = [
        f"  {name_of(certificate['urn'])}: {certificate['outputs']['thumbprint']}"
        for certificate in certificates
        if (keys := registered[certificate["inputs"]["applicationId"]]) is not None
        and certificate["outputs"]["keyId"].lower() not in {key.key_id.lower() for key in keys}
    ]
    return [message("settle.withdrawn"), *lines] if lines else []


def create_providers(engine: Engine, report: Callable[[str], None]) -> bool:
    """Create the providers that a lost state had, and gates that they wait for; returns whether there were any.

    Their kubeconfig is secret, so that no plan has it.
    """
    begun = orphans.candidates(_plan(engine, report), engine.resources())
    kinds = (resource_types.PROVIDER, resource_types.CLUSTER_GATE)
    urns = [resource["urn"] for resource in begun if resource["type"].startswith(kinds)]
    if urns:
        report(f"creating what the search needs: {', '.join(map(name_of, urns))}")
        create_alone(engine, urns)
    return bool(urns)


def create_alone(engine: Engine, urns: Iterable[str]) -> None:
    """Have the engine create these resources. The run's outputs are not kept: they look like those of a complete one.

    A URN may lack its beginning.
    """
    outputs: Any = engine.outputs()
    # The engine accepts only a pattern as a target that is not in the state yet.
    engine.up(("--yes", "--skip-preview", *(word for urn in urns for word in ("--target", f"**{urn}"))))
    state = engine.state()
    kept: list[StateResource] = [
        {**resource, "outputs": outputs} if resource["type"] == resource_types.STACK else resource
        for resource in resources_in(state)
    ]
    engine.replace_state(with_resources(state, kept))


def find_orphans(engine: Engine, report: Callable[[str], None], *, is_lost: bool = False) -> list[Orphan]:
    """The resources that exist but are missing in the state (`is_lost`: all of it), in the plan's order."""
    plan, state = _plan(engine, report), engine.resources()
    # An `up` in between may have created duplicate applications, for which the finder raises CommandError.
    applications = [resource for resource in state if resource["type"] == resource_types.APPLICATION]
    candidates = [*orphans.candidates(plan, state, is_lost=is_lost), *applications]
    [subscription_id] = [value for key, value in plan["config"].items() if key.endswith(":subscriptionId")]
    with ExitStack() as stack, ThreadPoolExecutor(_MAX_WORKERS) as pool:
        azure, objects = stack.enter_context(deployer(engine)), None
        if any(resource["type"].startswith("kubernetes:") for resource in candidates):
            objects = stack.enter_context(management_cluster(engine))
        finders = Finders(azure, objects, subscription_id, orphans.ids(state), outputs_in(state).get("keyVaultId"))
        found_ids = list(pool.map(lambda resource: finders.find(resource["type"], resource["inputs"]), candidates))
        all_orphans = [
            Orphan(resource, id, orphans.components_above(resource, plan), masked=finders.masked(resource["inputs"]))
            for resource, id in zip(candidates, found_ids, strict=True)
            if id is not None
        ]
    secrets = orphans.secrets(plan, state)
    if not all_orphans and not secrets:
        return []
    left_alone: list[tuple[str, str]] = []
    with adoption_guard(engine) as guard:
        found = list(_free(engine, guard, all_orphans, left_alone))
        try:
            for resource, id, why in guard.deleted_secrets(secrets):
                if why is None:
                    found.append(Orphan(resource, id, orphans.components_above(resource, plan), is_deleted=True))
                else:
                    left_alone.append((f"{name_of(resource['urn'])}: {id}, deleted", why))
        except AzureRefusedError as refused:
            report(f"deleted secrets were not searched: {refused}")
    if left_alone:
        report(f"left alone:\n{by_reason(left_alone)}")
    # A deleted secret may be one that another orphan depends on.
    order = {step["urn"]: place for place, step in enumerate(plan["steps"])}
    return sorted(found, key=lambda orphan: order[orphan.resource["urn"]])


def undelete(engine: Engine, found: Sequence[Orphan]) -> None:
    """Have vaults recover the deleted secrets among the orphans, and wait until ARM has them (seconds)."""
    if not (deleted := [orphan.id for orphan in found if orphan.is_deleted]):
        return
    with deployer(engine) as azure:
        for id in deleted:
            vault, name = parse_arm_id(id).names
            azure.vault(vault, "POST", f"/deletedsecrets/{name}/recover")
        for pause in _PAUSES:
            time.sleep(pause)
            if all(azure.resource(id, resource_types.KEY_VAULT_API) for id in deleted):
                return
    raise CommandError(f"the vault has not yet recovered {', '.join(deleted)}: run the command again in a minute")


def _free(
    engine: Engine, guard: AdoptionGuard, found_orphans: Sequence[Orphan], left_alone: list[tuple[str, str]]
) -> Iterator[Orphan]:
    """The orphans that are not another stack's; `left_alone` gets the others, with the reasons."""
    ownership = Ownership.of([*engine.resources(), *(orphan.resource for orphan in found_orphans)])
    clusters = engine.outputs().get("hostedClusters") or {}
    for orphan in found_orphans:
        if orphan.resource["type"] == resource_types.APPLICATION:
            owner = ownership.owner(orphan.resource["urn"])
            cluster: Mapping[str, Any] = clusters.get(owner.cluster) or {}
            recorded = (cluster.get("controlPlane", {}).get(owner.identity) or {}).get("clientID")
            guard.require_untouched(orphan.id, orphan.resource["inputs"].get("owners", ()), recorded)
        principal = str(orphan.resource["inputs"].get("principalId", ""))
        if why := guard.objection(orphan.resource["type"], orphan.id, principal):
            left_alone.append((f"{orphan.name}: {orphan.id}", why))
        else:
            yield orphan


def _plan(engine: Engine, report: Callable[[str], None]) -> Plan:
    """The plan of the program; without the schedules if one of them refuses to plan a new certificate yet.

    A schedule does so for hours after a `down` that was killed between the deletions of a secret and of its schedule.
    Registrations of a killed renewal are deleted with their application.
    """
    try:
        return engine.planned()
    except PreviewError as refused:
        if RenewedType.SCHEDULE not in refused.types:
            raise
        schedules = [resource["urn"] for resource in engine.resources() if resource["type"] == RenewedType.SCHEDULE]
        plan = engine.planned([word for urn in schedules for word in ("--exclude", urn)])  # raises other errors
        report(f"no certificate can be planned, so that none is searched: {refused}")
        return plan


def take_owner_id(engine: Engine, owner_id: str) -> None:
    """Make an owner id this stack's, so that resources with it belong to the stack again.

    Raises CommandError for an invalid id, and for the id of another stack of the backend.
    """
    try:
        id = str(uuid.UUID(owner_id))
    except ValueError:
        raise CommandError(message("settle.no-owner-id", text=owner_id)) from None
    stacks = Stacks.read(engine)
    others = stacks.others(engine.stack).items()
    if holder := next((name for name, contents in others if contents.owner == id), None):
        raise CommandError(message("settle.another-owner", id=id, holder=holder))
    if not any(resource["type"] == resource_types.STACK_OWNER for resource in engine.resources()):
        create_alone(engine, [f"::{resource_types.STACK_OWNER}::*"])
    written: StackOwnerOutputs[str] = {"ownerId": id}
    resources: list[StateResource] = [
        {**resource, "id": id, "outputs": {**(resource.get("outputs") or {}), **written}}
        if resource["type"] == resource_types.STACK_OWNER
        else resource
        for resource in engine.resources()
    ]
    engine.replace_state(with_resources(engine.state(), resources))


def refuse_lost(engine: Engine, report: Callable[[str], None]) -> None:
    """Find applications of another stack with this name; `report` prints them.

    Raises CommandError if the stack has no owner id, and so may have lost its state: an `up` would create them again.
    """
    own = Contents.of(engine.resources_if_any()).owner
    tag = stack_tag(NAMESPACE, engine.stack)
    with deployer(engine) as azure:
        tagged = azure.directory_objects("/applications", f"tags/any(t:startswith(t,'{tag}:'))")
        strangers = [application for application in tagged if owner_of_application(application) not in (None, own)]
        if not strangers:
            return
        guard = AdoptionGuard(azure, Stacks.read(engine), engine.stack)
        listed = by_reason(
            (one["displayName"], str(guard.objection(resource_types.APPLICATION, f"/applications/{one['id']}")))
            for one in strangers
        )
    if own is not None:
        report(f"applications that are left alone:\n{listed}")
        return
    raise CommandError(message("settle.lost", stack=engine.stack, listed=listed))
