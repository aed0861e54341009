"""What each injected fault does to a healthy world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Concatenate, Final, ParamSpec

from identity.azure.records import RoleAssignmentRecord
from identity.settings import Problem
from ops.world.expected import StateRole, VaultRecord
from ops.world.seen import (
    AzureView,
    HostedClusterCondition,
    SeenApplication,
    SeenConfiguration,
    SeenContainer,
    SeenLock,
    SeenRun,
    StackWorld,
    Unread,
    known,
)
from tests.unit.ops.doctor import worlds
from tests.unit.ops.doctor.worlds import CLUSTER, GUEST, Change, identity

Permission = Mapping[str, tuple[str, ...]]
# One whose certificate the stack issued, and one whose document was imported.
ISSUED, IMPORTED = "cloudProvider", "ingress"
# From the provider's and the driver's own words (docs/guides/troubleshooting.md).
FORBIDDEN = "failed to mount objects, error: failed to get objectType:secret: RESPONSE 403: 403 Forbidden"
UNASSIGNED = "ManagedIdentityCredential authentication failed. the requested identity isn't assigned to this resource"
NOT_REGISTERED = "AADSTS700027: The certificate with identifier used to sign the client assertion is not registered"
OTHER = "00000000-0000-4000-8000-00000000ffff"
_MINUTES: Final = timedelta(minutes=1)
P = ParamSpec("P")


def late(change: Callable[Concatenate[StackWorld, P], StackWorld]) -> Callable[P, Change]:
    """The change of any world, with its arguments given first."""

    def given(*arguments: P.args, **named: P.kwargs) -> Change:
        return lambda world: change(world, *arguments, **named)

    return given


published, refused = late(worlds.self_issued), late(worlds.refused)


@late
def trusted(world: StackWorld, /, **changes: Any) -> StackWorld:
    """One federated credential of `GUEST` is another: the service account of the first."""
    first, *others = worlds.guest(world, GUEST).credentials
    return worlds.with_managed_identity(world, GUEST, credentials=(*others, replace(first, **changes)))


def trusting_another_issuer(world: StackWorld) -> StackWorld:
    elsewhere = "https://elsewhere.blob.core.windows.net/elsewhere"
    credentials = tuple(replace(one, issuer=elsewhere) for one in worlds.guest(world, GUEST).credentials)
    return worlds.with_managed_identity(world, GUEST, credentials=credentials)


def without_managed_identity(world: StackWorld) -> StackWorld:
    gone = worlds.guest(world, GUEST).resource_id
    return replace(world, managed_identities={**world.managed_identities, gone: None})


@late
def locked(world: StackWorld, runs: bool | None) -> StackWorld:
    lock = SeenLock(owner="eve@ci-7 (pid 4711)", since=world.now - 47 * _MINUTES, runs=runs)
    return replace(world, locks=(lock,))


def last_run(kind: str, *, has_failed: bool) -> Change:
    run = SeenRun(kind=kind, started="2026-11-23T04:45:12Z", has_failed=has_failed)
    return lambda world: replace(world, last_run=run)


@late
def access(world: StackWorld, /, **changes: Any) -> StackWorld:
    access = known(world.access)
    return replace(world, access=replace(access, **changes))


@late
def value(world: StackWorld, *place: str | int) -> StackWorld:
    fix = "`.venv/bin/idstack pulumi -- config set ...`"
    value = Problem(place=place, rule="a-rule", found='"x"', accepted="an ARM id", fix=fix)
    seen = replace(known(world.configuration), refused=(value,), clusters=(CLUSTER,), identities={})
    return replace(world, configuration=seen)


@late
def enabled(world: StackWorld, /, **more: tuple[str, ...]) -> StackWorld:
    found = dict(known(world.configuration).identities)
    for cluster, fields in more.items():
        found[cluster] = (*found.get(cluster, ()), *fields)
    return replace(world, configuration=SeenConfiguration(identities=found))


def never_up(world: StackWorld) -> StackWorld:
    empty = worlds.with_state(world, clusters=(), reader_roles=(), own_vault=None, vault_id="", is_up=False)
    return replace(empty, vault=Unread("it was not looked for"))


@late
def vault(world: StackWorld, /, **changes: Any) -> StackWorld:
    vault = known(world.vault)
    assert isinstance(vault, VaultRecord)
    return worlds.all_unmounted(replace(world, vault=replace(vault, **changes)), FORBIDDEN)


@late
def add_on(world: StackWorld, /, **config: str) -> StackWorld:
    found = known(world.add_on)
    assert found is not None
    return replace(world, add_on={**found, "config": {**found["config"], **config}})


def vault_gone(world: StackWorld) -> StackWorld:
    gone = replace(world, vault=None, secrets=dict.fromkeys(world.secrets))
    return worlds.all_unmounted(gone, "no such host: kv-idstack-local.vault.azure.net")


def with_role(world: StackWorld, role: StateRole, found: RoleAssignmentRecord | None) -> StackWorld:
    return replace(world, roles={**world.roles, role.id: found})


@late
def reader_role(world: StackWorld, found: RoleAssignmentRecord | None) -> StackWorld:
    [role] = worlds.state(world).reader_roles
    return worlds.all_unmounted(with_role(world, role, found), FORBIDDEN)


def read_by_secret(world: StackWorld) -> StackWorld:
    """With `keyVaultUserScope: secrets` the key-vault-user's role is on each secret; here on `IMPORTED`'s alone."""
    [role] = worlds.state(world).reader_roles
    return worlds.with_state(worlds.with_identity(world, IMPORTED, reader_roles=(role,)), reader_roles=())


@late
def secret_reader(world: StackWorld, found: RoleAssignmentRecord | None) -> StackWorld:
    by_secret = read_by_secret(world)
    [role] = identity(by_secret, IMPORTED).reader_roles
    return worlds.unmounted(with_role(by_secret, role, found), IMPORTED, FORBIDDEN)


@late
def identity_role(world: StackWorld, /, **changes: str) -> StackWorld:
    """Without changes the assignment is gone."""
    role = identity(world, IMPORTED).roles[0]
    found = known(world.roles[role.id])
    lost = with_role(world, role, replace(found, **changes) if changes and found is not None else None)
    return worlds.denied(lost, IMPORTED, 403, "403 AuthorizationFailed: The client does not have authorization")


@late
def custom_role(world: StackWorld, change: Callable[[Permission], Permission]) -> StackWorld:
    """The identity has a custom role everywhere, made from its own; the state knows that role as the stack's."""
    own = identity(world, ISSUED)
    held = known(world.definitions[own.role_guid])
    assert held is not None
    custom = replace(held, name="Narrow", is_custom=True, permissions=tuple(map(change, held.permissions)))
    seen = worlds.role(own.roles[0].principal_id, f"/roles/{OTHER}")
    at_each = {expected_access.key: (seen,) for expected_access in own.accesses}
    return replace(
        worlds.with_identity(
            world, ISSUED, roles=tuple(replace(role, role_definition_id=f"/roles/{OTHER}") for role in own.roles)
        ),
        roles={**world.roles, **{role.id: seen for role in own.roles}},
        assignments={**world.assignments, **at_each},
        definitions={**world.definitions, OTHER: custom},
    )


def at_a_second_vault(world: StackWorld) -> StackWorld:
    """The key is in another vault, too, where nobody has assigned anything."""
    own = identity(world, "kms")
    second = replace(own.accesses[0], scope=f"{own.accesses[0].scope}-2")
    changed = worlds.with_identity(world, "kms", accesses=(*own.accesses, second))
    return replace(changed, assignments={**world.assignments, second.key: ()})


def without_joining(permission: Permission) -> Permission:
    kept = tuple(action for action in permission["actions"] if "subnets/join" not in action)
    return {**permission, "actions": kept}


def all_but_subnets(permission: Permission) -> Permission:
    return {**permission, "actions": ("*",), "notActions": ("Microsoft.Network/*/subnets/*",)}


def secret(**changes: Any) -> Change:
    return lambda world: worlds.with_secret(world, IMPORTED, **changes)


def secret_gone(world: StackWorld) -> StackWorld:
    gone = replace(world, secrets={**world.secrets, identity(world, IMPORTED).secret: None})
    return worlds.unmounted(gone, IMPORTED, "RESPONSE 404: 404 Not Found ERROR CODE: SecretNotFound")


def secret_expired(world: StackWorld) -> StackWorld:
    """Key Vault serves it all the same; the loader refuses it."""
    expired = worlds.with_secret(world, ISSUED, expires=world.now - _MINUTES)
    return worlds.unloaded(expired, ISSUED, "credential document: 1 problem - not_after: found a date that is past")


def class_gone(world: StackWorld) -> StackWorld:
    name = identity(world, IMPORTED).secret_provider_class
    classes = {key: provider_class for key, provider_class in known(worlds.plane(world).classes).items() if key != name}
    gone = worlds.with_plane(world, classes=classes)
    return worlds.unmounted(gone, IMPORTED, f'SecretProviderClass.secrets-store.csi.x-k8s.io "{name}" not found')


def class_parameters(**parameters: str) -> Change:
    return lambda world: worlds.unmounted(worlds.with_class(world, IMPORTED, **parameters), IMPORTED, FORBIDDEN)


@late
def objects(world: StackWorld, old: str, new: str) -> StackWorld:
    found = identity(world, IMPORTED)
    text = known(worlds.plane(world).classes)[found.secret_provider_class]["parameters"]["objects"]
    assert old.format(found.secret) in text
    return class_parameters(objects=text.replace(old.format(found.secret), new))(world)


def unmounted(message: str) -> Change:
    return lambda world: worlds.unmounted(world, IMPORTED, message)


def old_version(world: StackWorld) -> StackWorld:
    renewed = worlds.with_secret(world, ISSUED, version="2" * 32, created=world.now - 47 * _MINUTES)
    return worlds.warned(renewed, ISSUED, "MountRotationFailed", UNASSIGNED)


def without_volume(world: StackWorld) -> StackWorld:
    def stripped(container: SeenContainer) -> SeenContainer:
        return replace(container, mounts={})

    world = worlds.with_container(world, IMPORTED, stripped)
    name = identity(world, IMPORTED).secret_provider_class
    mounts = tuple(mount for mount in known(worlds.plane(world).mounts) if mount.secret_provider_class != name)
    world = worlds.with_pods(worlds.with_plane(world, mounts=mounts), IMPORTED, lambda pod: replace(pod, classes={}))
    return worlds.unloaded(world, IMPORTED, "credential file /mnt/certs/x: found no readable file")


def other_class(world: StackWorld) -> StackWorld:
    other = identity(world, ISSUED).secret_provider_class
    return worlds.with_pods(world, IMPORTED, lambda pod: replace(pod, classes=dict.fromkeys(pod.classes, other)))


def without_pod(world: StackWorld) -> StackWorld:
    return worlds.with_pods(world, IMPORTED, lambda pod: None)


def elsewhere(container: SeenContainer) -> SeenContainer:
    return replace(container, mounts={f"{path}/elsewhere": volume for path, volume in container.mounts.items()})


def wrong_path(world: StackWorld) -> StackWorld:
    world = worlds.with_container(world, IMPORTED, elsewhere)
    return worlds.unloaded(world, IMPORTED, "credential file /mnt/certs/x: found no readable file")


def wrong_variable(world: StackWorld) -> StackWorld:
    def changed(container: SeenContainer) -> SeenContainer:
        return replace(container, variables=dict.fromkeys(container.variables, "/mnt/certs/other"))

    world = worlds.with_container(world, IMPORTED, changed)
    return worlds.unloaded(world, IMPORTED, "credential file /mnt/certs/other: found no readable file")


def without_config(world: StackWorld) -> StackWorld:
    """The driver mounts its volume, and the kubelet waits for the Secret of another one."""
    message = 'MountVolume.SetUp failed for volume "cloud-config" : secret "azure-cloud-config" not found'
    world = worlds.warned(world, ISSUED, "FailedMount", message)
    return worlds.waiting(world, ISSUED, "Pending", "ContainerCreating: no further message")


def crashes(world: StackWorld) -> StackWorld:
    return worlds.waiting(world, ISSUED, "Running", "CrashLoopBackOff: back-off 5m0s restarting failed container")


def without_kubelet(world: StackWorld) -> StackWorld:
    """The pods have ended with it, and nobody withdraws that they are ready."""
    silent = dict.fromkeys((pod.name for pod in worlds.pods_of(world, IMPORTED)), Unread("the probe does not answer"))
    return worlds.with_plane(world, reports={**worlds.plane(world).reports, **silent})


def denied(status: int, error: str) -> Change:
    return lambda world: worlds.denied(world, IMPORTED, status, error)


@late
def application(world: StackWorld, found: dict[str, Any] | None) -> StackWorld:
    client = identity(world, ISSUED).client_id
    before = known(world.applications[client])
    assert isinstance(before, SeenApplication)
    after = None if found is None else replace(before, **found)
    changed = replace(world, applications={**world.applications, client: after})
    return worlds.refused(changed, ISSUED, NOT_REGISTERED)


def signed_out(world: StackWorld) -> StackWorld:
    why = Unread("it was not read")
    return replace(world, **vars(AzureView()), access=why, control_planes={}, sign_in="AADSTS700082: expired")


@late
def added(world: StackWorld, credential: str) -> StackWorld:
    client = identity(world, ISSUED).client_id
    application = known(world.applications[client])
    assert application is not None
    changed = replace(application, added=(credential,))
    return replace(world, applications={**world.applications, client: changed})


def registration_ended(world: StackWorld) -> StackWorld:
    thumbprint = identity(world, ISSUED).thumbprint
    return application({"certificates": {str(thumbprint): world.now - _MINUTES}})(world)


@late
def hosted_cluster(world: StackWorld, key: str | None) -> StackWorld:
    """The HostedCluster does not name the identity (None), or names another client or secret."""
    world = worlds.in_hypershift(world)
    found = known(worlds.plane(world).hosted_cluster)
    assert found is not None
    *path, last = identity(world, IMPORTED).hosted_cluster_path
    holder: Any = found.spec
    for step in path:
        holder = holder[step]
    if key is None:
        del holder[last]
    else:
        holder[last][key] = "another"
    return world


def condition(world: StackWorld) -> StackWorld:
    world = worlds.in_hypershift(world)
    found = known(worlds.plane(world).hosted_cluster)
    assert found is not None
    bad = HostedClusterCondition(CLUSTER, "ValidAzureKMSConfig", "False", "AzureError", "encrypt: 403")
    return worlds.with_plane(world, hosted_cluster=replace(found, conditions=(*found.conditions, bad)))
