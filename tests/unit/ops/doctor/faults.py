"""The injected faults: what each does to a healthy world, and the one check that must be blamed for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from ops.doctor.model.check import Stage
from ops.doctor.model.expected import ExpectedRole
from ops.doctor.model.seen import Unread, known
from ops.doctor.model.world import (
    RefusedValue,
    SeenAccess,
    SeenApplication,
    SeenConfiguration,
    SeenContainer,
    SeenLock,
    SeenRole,
    SeenVault,
    World,
)
from ops.outputs.cluster_state import HostedClusterCondition
from tests.unit.ops.doctor import worlds
from tests.unit.ops.doctor.worlds import CLUSTER, Change, identity

# One whose certificate the stack issued, and one whose document was imported.
ISSUED, IMPORTED = "cloudProvider", "ingress"
# From the provider's and the driver's own words (docs/troubleshooting.md).
FORBIDDEN = "failed to mount objects, error: failed to get objectType:secret: RESPONSE 403: 403 Forbidden"
UNASSIGNED = "ManagedIdentityCredential authentication failed. the requested identity isn't assigned to this resource"
NOT_REGISTERED = "AADSTS700027: The certificate with identifier used to sign the client assertion is not registered"
OTHER = "00000000-0000-4000-8000-00000000ffff"
_MINUTES: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class InjectedFault:
    """A fault. `stage` and `check` are blamed, of `identity`, or of the cluster, or (without both) of the stack."""

    name: str
    stage: Stage
    check: str
    identity: str | None
    change: Change
    cluster: str | None = CLUSTER

    @property
    def blamed(self) -> tuple[str | None, str | None, str, str]:
        return self.cluster, self.identity, str(self.stage), self.check


def of_stack(name: str, stage: Stage, check: str, change: Change) -> InjectedFault:
    return InjectedFault(name, stage, check, None, change, cluster=None)


def of_cluster(name: str, stage: Stage, check: str, change: Change) -> InjectedFault:
    return InjectedFault(name, stage, check, None, change)


def _locked(runs: bool | None) -> Change:
    def change(world: World) -> World:
        lock = SeenLock(owner="eve@ci-7 (pid 4711)", since=world.now - 47 * _MINUTES, runs=runs)
        return replace(world, locks=(lock,))

    return change


def _access(**changes: Any) -> Change:
    def change(world: World) -> World:
        access = known(world.access)
        return replace(world, access=replace(access, **changes))

    return change


def _configuration(**changes: Any) -> Change:
    return lambda world: replace(world, configuration=replace(known(world.configuration), **changes))


def _value(cluster: str | None, path: str) -> Change:
    value = RefusedValue(cluster=cluster, path=path, found='"x"', accepted="an ARM id", fix="`pulumi config set ...`")
    return _configuration(refused=(value,), identities={})


def _enabled(**more: tuple[str, ...]) -> Change:
    def change(world: World) -> World:
        found = dict(known(world.configuration).identities)
        for cluster, fields in more.items():
            found[cluster] = (*found.get(cluster, ()), *fields)
        return replace(world, configuration=SeenConfiguration(refused=(), identities=found))

    return change


def _never_up(world: World) -> World:
    empty = worlds.with_state(world, clusters=(), reader_roles=(), own_vault=None, vault_id="", is_up=False)
    return replace(empty, vault=Unread("it was not looked for"))


def _vault(**changes: Any) -> Change:
    def change(world: World) -> World:
        vault = known(world.vault)
        assert isinstance(vault, SeenVault)
        return worlds.all_unmounted(replace(world, vault=replace(vault, **changes)), FORBIDDEN)

    return change


def _vault_gone(world: World) -> World:
    gone = replace(world, vault=None, secrets=dict.fromkeys(world.secrets))
    return worlds.all_unmounted(gone, "no such host: kv-idstack-local.vault.azure.net")


def _role(world: World, role: ExpectedRole, found: SeenRole | None) -> World:
    return replace(world, roles={**world.roles, role.id: found})


def _reader_role(found: SeenRole | None) -> Change:
    def change(world: World) -> World:
        [role] = worlds.state(world).reader_roles
        return worlds.all_unmounted(_role(world, role, found), FORBIDDEN)

    return change


def _identity_role(**changes: str) -> Change:
    """Without changes the assignment is gone."""

    def change(world: World) -> World:
        role = identity(world, IMPORTED).roles[0]
        found = known(world.roles[role.id])
        lost = _role(world, role, replace(found, **changes) if changes and found is not None else None)
        return worlds.denied(lost, IMPORTED, 403, "403 AuthorizationFailed: The client does not have authorization")

    return change


def _secret(**changes: Any) -> Change:
    return lambda world: worlds.with_secret(world, IMPORTED, **changes)


def _secret_gone(world: World) -> World:
    gone = replace(world, secrets={**world.secrets, identity(world, IMPORTED).secret: None})
    return worlds.unmounted(gone, IMPORTED, "RESPONSE 404: 404 Not Found ERROR CODE: SecretNotFound")


def _secret_expired(world: World) -> World:
    """Key Vault serves it all the same; the loader refuses it."""
    expired = worlds.with_secret(world, ISSUED, expires=world.now - _MINUTES)
    return worlds.unloaded(expired, ISSUED, "credential document: 1 problem - not_after: found a date that is past")


def _class_gone(world: World) -> World:
    name = identity(world, IMPORTED).secret_provider_class
    classes = {key: each for key, each in known(worlds.plane(world).classes).items() if key != name}
    gone = worlds.with_plane(world, classes=classes)
    return worlds.unmounted(gone, IMPORTED, f'SecretProviderClass.secrets-store.csi.x-k8s.io "{name}" not found')


def _class(**parameters: str) -> Change:
    return lambda world: worlds.unmounted(worlds.with_class(world, IMPORTED, **parameters), IMPORTED, FORBIDDEN)


def _objects(old: str, new: str) -> Change:
    def change(world: World) -> World:
        found = identity(world, IMPORTED)
        text = known(worlds.plane(world).classes)[found.secret_provider_class].parameters["objects"]
        assert old.format(found.secret) in text
        return _class(objects=text.replace(old.format(found.secret), new))(world)

    return change


def _unmounted(message: str) -> Change:
    return lambda world: worlds.unmounted(world, IMPORTED, message)


def _old_version(world: World) -> World:
    renewed = worlds.with_secret(world, ISSUED, version="2" * 32, created=world.now - 47 * _MINUTES)
    return worlds.warned(renewed, ISSUED, "MountRotationFailed", UNASSIGNED)


def _without_volume(world: World) -> World:
    def stripped(container: SeenContainer) -> SeenContainer:
        return replace(container, mounts={})

    world = worlds.with_container(world, IMPORTED, stripped)
    name = identity(world, IMPORTED).secret_provider_class
    mounts = tuple(each for each in known(worlds.plane(world).mounts) if each.secret_provider_class != name)
    world = worlds.with_pods(worlds.with_plane(world, mounts=mounts), IMPORTED, lambda pod: replace(pod, classes={}))
    return worlds.unloaded(world, IMPORTED, "credential file /mnt/certs/x: found no readable file")


def _other_class(world: World) -> World:
    other = identity(world, ISSUED).secret_provider_class
    return worlds.with_pods(world, IMPORTED, lambda pod: replace(pod, classes=dict.fromkeys(pod.classes, other)))


def _without_pod(world: World) -> World:
    return worlds.with_pods(world, IMPORTED, lambda pod: None)


def _elsewhere(container: SeenContainer) -> SeenContainer:
    return replace(container, mounts={f"{path}/elsewhere": volume for path, volume in container.mounts.items()})


def _wrong_path(world: World) -> World:
    world = worlds.with_container(world, IMPORTED, _elsewhere)
    return worlds.unloaded(world, IMPORTED, "credential file /mnt/certs/x: found no readable file")


def _wrong_variable(world: World) -> World:
    def changed(container: SeenContainer) -> SeenContainer:
        return replace(container, variables=dict.fromkeys(container.variables, "/mnt/certs/other"))

    world = worlds.with_container(world, IMPORTED, changed)
    return worlds.unloaded(world, IMPORTED, "credential file /mnt/certs/other: found no readable file")


def _without_config(world: World) -> World:
    """The driver mounts its volume, and the kubelet waits for the Secret of another one."""
    message = 'MountVolume.SetUp failed for volume "cloud-config" : secret "azure-cloud-config" not found'
    world = worlds.warned(world, ISSUED, "FailedMount", message)
    return worlds.waiting(world, ISSUED, "Pending", "ContainerCreating: no further message")


def _crashes(world: World) -> World:
    return worlds.waiting(world, ISSUED, "Running", "CrashLoopBackOff: back-off 5m0s restarting failed container")


def _refused(field: str, error: str) -> Change:
    return lambda world: worlds.refused(world, field, error)


def _denied(status: int, error: str) -> Change:
    return lambda world: worlds.denied(world, IMPORTED, status, error)


def _application(found: dict[str, Any] | None) -> Change:
    def change(world: World) -> World:
        client = identity(world, ISSUED).client_id
        before = known(world.applications[client])
        assert isinstance(before, SeenApplication)
        after = None if found is None else replace(before, **found)
        changed = replace(world, applications={**world.applications, client: after})
        return worlds.refused(changed, ISSUED, NOT_REGISTERED)

    return change


def _registration_ended(world: World) -> World:
    thumbprint = identity(world, ISSUED).thumbprint
    return _application({"certificates": {str(thumbprint): world.now - _MINUTES}})(world)


def _hosted_cluster(key: str | None) -> Change:
    """The HostedCluster does not name the identity (None), or names another client or secret."""

    def change(world: World) -> World:
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

    return change


def _condition(world: World) -> World:
    world = worlds.in_hypershift(world)
    found = known(worlds.plane(world).hosted_cluster)
    assert found is not None
    bad = HostedClusterCondition(CLUSTER, "ValidAzureKMSConfig", "False", "AzureError", "encrypt: 403")
    return worlds.with_plane(world, hosted_cluster=replace(found, conditions=(*found.conditions, bad)))


_PATH = "idstack:hostedClusters[0].vnetID"
_SIGN_IN_REFUSED = SeenAccess(
    server="the management cluster", who="the stack", missing=("a sign-in: AADSTS7000215",), hint="x", only_looks=False
)

FAULTS: Final = (
    of_stack("no such stack", Stage.ENGINE, "state", lambda w: replace(w, state=Unread("no stack named 'x' found"))),
    of_stack("locked by a run", Stage.BACKEND, "lock", _locked(True)),
    of_stack("locked by a killed run", Stage.BACKEND, "lock", _locked(False)),
    of_stack("locked by another machine", Stage.BACKEND, "lock", _locked(None)),
    of_stack(
        "a pending operation",
        Stage.BACKEND,
        "pending-operations",
        lambda world: worlds.with_state(world, pending=("creating hc1-ingress-roles-dns",)),
    ),
    of_stack(
        "a wrong passphrase",
        Stage.BACKEND,
        "decryption",
        lambda w: replace(w, decryption="error: incorrect passphrase"),
    ),
    of_stack("a refused sign-in", Stage.ACCESS, "permissions", lambda world: replace(world, access=_SIGN_IN_REFUSED)),
    of_stack("a missing kind", Stage.ACCESS, "permissions", _access(missing=("kinds: x",), hint="install it")),
    of_cluster("a refused value of a cluster", Stage.CONFIGURATION, "settings", _value(CLUSTER, _PATH)),
    of_stack("a refused value", Stage.CONFIGURATION, "settings", _value(None, "idstack:location")),
    of_stack("never brought up", Stage.CONFIGURATION, "brought-up", _never_up),
    InjectedFault("a new cluster", Stage.CONFIGURATION, "brought-up", None, _enabled(hc2=(IMPORTED,)), cluster="hc2"),
    of_cluster("a new identity", Stage.CONFIGURATION, "brought-up", _enabled(hc1=("imageRegistry",))),
    InjectedFault(
        "another secret in the HostedCluster",
        Stage.CONFIGURATION,
        "hosted-cluster",
        IMPORTED,
        _hosted_cluster("credentialsSecretName"),
    ),
    InjectedFault(
        "another client in the HostedCluster",
        Stage.CONFIGURATION,
        "hosted-cluster",
        IMPORTED,
        _hosted_cluster("clientID"),
    ),
    InjectedFault(
        "an identity missing in the HostedCluster",
        Stage.CONFIGURATION,
        "hosted-cluster",
        IMPORTED,
        _hosted_cluster(None),
    ),
    of_stack("vault deleted", Stage.VAULT, "vault", _vault_gone),
    of_stack("access policies", Stage.VAULT, "vault", _vault(uses_roles=False)),
    of_stack("vault of another tenant", Stage.VAULT, "vault", _vault(tenant_id=OTHER)),
    of_stack("closed network", Stage.VAULT, "vault", _vault(default_action="Deny")),
    of_stack("no public access", Stage.VAULT, "vault", _vault(public_network_access="Disabled")),
    of_stack("reader's role gone", Stage.VAULT, "reader-role", _reader_role(None)),
    of_stack(
        "reader's role of somebody else",
        Stage.VAULT,
        "reader-role",
        _reader_role(SeenRole(principal_id=OTHER, role_definition_id="4633458b-17de-408a-b874-0445c86b69e6")),
    ),
    InjectedFault("secret deleted", Stage.VAULT, "secret", IMPORTED, _secret_gone),
    InjectedFault("secret disabled", Stage.VAULT, "secret", IMPORTED, _secret(enabled=False)),
    InjectedFault("secret expired", Stage.VAULT, "secret", ISSUED, _secret_expired),
    InjectedFault(
        "secret of the future",
        Stage.VAULT,
        "secret",
        IMPORTED,
        lambda world: _secret(not_before=world.now + 60 * _MINUTES)(world),
    ),
    InjectedFault("another certificate", Stage.VAULT, "secret", IMPORTED, _secret(thumbprint="F" * 40)),
    InjectedFault("class deleted", Stage.CLASS, "class", IMPORTED, _class_gone),
    InjectedFault("class of another tenant", Stage.CLASS, "class", IMPORTED, _class(tenantId=OTHER)),
    InjectedFault("class of another vault", Stage.CLASS, "class", IMPORTED, _class(keyvaultName="kv-elsewhere")),
    InjectedFault("class as another reader", Stage.CLASS, "class", IMPORTED, _class(userAssignedIdentityID=OTHER)),
    InjectedFault("class with pod identity", Stage.CLASS, "class", IMPORTED, _class(usePodIdentity="true")),
    InjectedFault("class with another encoding", Stage.CLASS, "class", IMPORTED, _objects("utf-8", "base64")),
    InjectedFault(
        "class with another secret", Stage.CLASS, "class", IMPORTED, _objects("objectName: {}", "objectName: x")
    ),
    InjectedFault("class that is no YAML", Stage.CLASS, "class", IMPORTED, _class(objects="array: [")),
    InjectedFault("reader not on the nodes", Stage.MOUNT, "mount", IMPORTED, _unmounted(UNASSIGNED)),
    InjectedFault("role not applied yet", Stage.MOUNT, "mount", IMPORTED, _unmounted(FORBIDDEN)),
    InjectedFault(
        "value in another encoding",
        Stage.MOUNT,
        "mount",
        IMPORTED,
        _unmounted("base64 decoding of x failed: illegal data"),
    ),
    InjectedFault(
        "no driver",
        Stage.MOUNT,
        "mount",
        IMPORTED,
        _unmounted("driver name x not found in the list of registered CSI drivers"),
    ),
    InjectedFault("rotation fails", Stage.MOUNT, "mount", ISSUED, _old_version),
    InjectedFault("pod without volume", Stage.VOLUME, "volume", IMPORTED, _without_volume),
    InjectedFault("volume of another class", Stage.VOLUME, "volume", IMPORTED, _other_class),
    InjectedFault("no pod", Stage.VOLUME, "volume", IMPORTED, _without_pod),
    InjectedFault("another mount path", Stage.VOLUME, "volume", IMPORTED, _wrong_path),
    InjectedFault("another path in the variable", Stage.VOLUME, "volume", IMPORTED, _wrong_variable),
    InjectedFault("no cloud configuration", Stage.VOLUME, "pod", ISSUED, _without_config),
    InjectedFault("a container that crashes", Stage.VOLUME, "pod", ISSUED, _crashes),
    InjectedFault(
        "a document that names another file",
        Stage.VOLUME,
        "path",
        ISSUED,
        lambda world: worlds.with_reports(
            worlds.unloaded(world, ISSUED, "credential file /x: found no readable file"), ISSUED, file="/mnt/certs/x"
        ),
    ),
    InjectedFault(
        "a document that names no file",
        Stage.VOLUME,
        "path",
        ISSUED,
        lambda world: worlds.with_reports(
            worlds.unloaded(world, ISSUED, 'cloud config /etc/cloud.conf: found an empty "aadMSI"'), ISSUED, file=None
        ),
    ),
    InjectedFault(
        "a document that is no JSON",
        Stage.DOCUMENT,
        "document",
        IMPORTED,
        lambda world: worlds.unloaded(world, IMPORTED, "credential document: 1 problem - found no JSON object"),
    ),
    InjectedFault(
        "the document of another client",
        Stage.DOCUMENT,
        "document",
        IMPORTED,
        lambda world: worlds.with_reports(
            worlds.denied(world, IMPORTED, 403, "403 AuthorizationFailed"), IMPORTED, client_id=OTHER
        ),
    ),
    InjectedFault(
        "a document that expired",
        Stage.DOCUMENT,
        "document",
        IMPORTED,
        lambda world: worlds.with_reports(
            worlds.refused(world, IMPORTED, "AADSTS7000222: expired"), IMPORTED, expires=world.now - _MINUTES
        ),
    ),
    InjectedFault(
        "a document that was not loaded again",
        Stage.DOCUMENT,
        "document",
        ISSUED,
        lambda world: worlds.with_reports(worlds.refused(world, ISSUED, NOT_REGISTERED), ISSUED, thumbprint="F" * 40),
    ),
    InjectedFault("registration removed", Stage.SIGN_IN, "registration", ISSUED, _application({"certificates": {}})),
    InjectedFault("registration ended", Stage.SIGN_IN, "registration", ISSUED, _registration_ended),
    InjectedFault("application gone", Stage.SIGN_IN, "registration", ISSUED, _application(None)),
    InjectedFault("no service principal", Stage.SIGN_IN, "registration", ISSUED, _application({"is_enabled": None})),
    InjectedFault("principal disabled", Stage.SIGN_IN, "registration", ISSUED, _application({"is_enabled": False})),
    InjectedFault(
        "a managed identity deleted", Stage.SIGN_IN, "sign-in", IMPORTED, _refused(IMPORTED, "AADSTS700016: not found")
    ),
    InjectedFault("authority out of reach", Stage.SIGN_IN, "sign-in", ISSUED, _refused(ISSUED, "Connection refused")),
    InjectedFault("role gone", Stage.PROOF_CALL, "role", IMPORTED, _identity_role()),
    InjectedFault("role of somebody else", Stage.PROOF_CALL, "role", IMPORTED, _identity_role(principal_id=OTHER)),
    InjectedFault("another role", Stage.PROOF_CALL, "role", IMPORTED, _identity_role(role_definition_id=OTHER)),
    InjectedFault("denied with its role", Stage.PROOF_CALL, "proof-call", IMPORTED, _denied(403, "403 Forbidden")),
    InjectedFault("network gone", Stage.PROOF_CALL, "proof-call", IMPORTED, _denied(404, "404 ResourceNotFound")),
    of_cluster("a condition", Stage.HOSTED_CLUSTERS, "conditions", _condition),
)
