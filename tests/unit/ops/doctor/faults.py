"""The injected faults: what each does to a healthy world, and the one check that must be blamed for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from ops.world.seen import SeenAccess, StackWorld, Unread
from tests.unit.ops.doctor import changes, worlds
from tests.unit.ops.doctor.changes import FORBIDDEN, IMPORTED, ISSUED, NOT_REGISTERED, OTHER, UNASSIGNED
from tests.unit.ops.doctor.worlds import CLUSTER, GUEST, Change

_MINUTES: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class InjectedFault:
    """A fault. `check` is blamed, of `identity`, or of the cluster, or (without both) of the stack."""

    name: str
    check: str
    identity: str | None
    change: Change
    cluster: str | None = CLUSTER

    @property
    def blamed(self) -> tuple[str | None, str | None, str]:
        return self.cluster, self.identity, self.check


def of_stack(name: str, check: str, change: Change) -> InjectedFault:
    return InjectedFault(name, check, None, change, cluster=None)


def of_cluster(name: str, check: str, change: Change) -> InjectedFault:
    return InjectedFault(name, check, None, change)


def of_one_guest(world: StackWorld) -> StackWorld:
    """The stack with one identity of the guest cluster: what is wrong with an issuer is wrong with all of them."""
    [cluster] = worlds.state(world).clusters
    return worlds.with_state(world, clusters=(replace(cluster, guests=(worlds.guest(world, GUEST),)),))


_PATH = "idstack:hostedClusters[0].vnetID"
_SIGN_IN_REFUSED = SeenAccess(
    server="the management cluster",
    who="the stack",
    missing=("a sign-in: AADSTS7000215",),
    hint="x",
    is_read_only=False,
)

FAULTS: Final = (
    of_stack("no such stack", "state", lambda w: replace(w, state=Unread("the backend has no stack x"))),
    of_stack("locked by a run", "lock", changes.locked(True)),
    of_stack("locked by a killed run", "abandoned-lock", changes.locked(False)),
    of_stack("locked by another machine", "lock", changes.locked(None)),
    of_stack(
        "a pending operation",
        "pending-operations",
        lambda world: worlds.with_state(world, pending=("creating hc1-ingress-roles-dns",)),
    ),
    of_stack("a failed run", "last-run", changes.last_run("update", has_failed=True)),
    of_stack("a failed removal", "last-run", changes.last_run("destroy", has_failed=True)),
    of_stack("a wrong passphrase", "decryption", lambda w: replace(w, decryption="error: incorrect passphrase")),
    of_stack("no sign-in to Azure", "azure", changes.signed_out),
    of_stack("a refused sign-in", "permissions", lambda world: replace(world, access=_SIGN_IN_REFUSED)),
    of_stack("a missing kind", "permissions", changes.access(missing=("kinds: x",), hint="install it")),
    InjectedFault(
        "a client secret of somebody",
        "added-credentials",
        ISSUED,
        changes.added("client secret x of y (z)"),
    ),
    of_cluster("a refused value of a cluster", "settings", changes.value(CLUSTER, _PATH)),
    of_stack("a refused value", "settings", changes.value(None, "idstack:location")),
    of_stack("never brought up", "brought-up", changes.never_up),
    InjectedFault("a new cluster", "brought-up", None, changes.enabled(hc2=(IMPORTED,)), cluster="hc2"),
    of_cluster("a new identity", "brought-up", changes.enabled(hc1=("imageRegistry",))),
    InjectedFault(
        "another secret in the HostedCluster",
        "hosted-cluster",
        IMPORTED,
        changes.hosted_cluster("credentialsSecretName"),
    ),
    InjectedFault(
        "another client in the HostedCluster", "hosted-cluster", IMPORTED, changes.hosted_cluster("clientID")
    ),
    InjectedFault("an identity missing in the HostedCluster", "hosted-cluster", IMPORTED, changes.hosted_cluster(None)),
    of_stack("vault deleted", "vault", changes.vault_gone),
    of_stack("access policies", "vault", changes.vault(uses_roles=False)),
    of_stack("vault of another tenant", "vault", changes.vault(tenant_id=OTHER)),
    of_stack("closed network", "vault", changes.vault(default_action="Deny")),
    of_stack("no public access", "vault", changes.vault(public_network_access="Disabled")),
    of_stack("reader's role gone", "reader-role", changes.reader_role(None)),
    of_stack(
        "reader's role of somebody else",
        "reader-role",
        changes.reader_role(worlds.role(OTHER, "/roles/4633458b-17de-408a-b874-0445c86b69e6")),
    ),
    InjectedFault("reader's role on a secret", "secret-reader", IMPORTED, changes.secret_reader(None)),
    of_stack("no rotation of secrets", "secret-rotation", changes.add_on(enableSecretRotation="false")),
    of_stack("a slow poll", "secret-rotation", changes.add_on(rotationPollInterval="12h")),
    InjectedFault("secret deleted", "secret", IMPORTED, changes.secret_gone),
    InjectedFault("secret disabled", "secret", IMPORTED, changes.secret(enabled=False)),
    InjectedFault("secret expired", "secret", ISSUED, changes.secret_expired),
    InjectedFault(
        "secret of the future",
        "secret",
        IMPORTED,
        lambda world: changes.secret(not_before=world.now + 60 * _MINUTES)(world),
    ),
    InjectedFault("another certificate", "secret", IMPORTED, changes.secret(tags={"thumbprint": "F" * 40})),
    InjectedFault("class deleted", "class", IMPORTED, changes.class_gone),
    InjectedFault("class of another tenant", "class", IMPORTED, changes.class_parameters(tenantId=OTHER)),
    InjectedFault("class of another vault", "class", IMPORTED, changes.class_parameters(keyvaultName="kv-elsewhere")),
    InjectedFault("class as another reader", "class", IMPORTED, changes.class_parameters(userAssignedIdentityID=OTHER)),
    InjectedFault("class with pod identity", "class", IMPORTED, changes.class_parameters(usePodIdentity="true")),
    InjectedFault("class with another encoding", "class", IMPORTED, changes.objects("utf-8", "base64")),
    InjectedFault("class with another secret", "class", IMPORTED, changes.objects("objectName: {}", "objectName: x")),
    InjectedFault("class that is not YAML", "class", IMPORTED, changes.class_parameters(objects="array: [")),
    InjectedFault("reader not on the nodes", "mount", IMPORTED, changes.unmounted(UNASSIGNED)),
    InjectedFault("role not applied yet", "mount", IMPORTED, changes.unmounted(FORBIDDEN)),
    InjectedFault(
        "value in another encoding", "mount", IMPORTED, changes.unmounted("base64 decoding of x failed: illegal data")
    ),
    InjectedFault(
        "no driver",
        "mount",
        IMPORTED,
        changes.unmounted("driver name x not found in the list of registered CSI drivers"),
    ),
    InjectedFault("rotation fails", "mount", ISSUED, changes.old_version),
    InjectedFault("pod without volume", "volume", IMPORTED, changes.without_volume),
    InjectedFault("volume of another class", "volume", IMPORTED, changes.other_class),
    InjectedFault("no pod", "volume", IMPORTED, changes.without_pod),
    InjectedFault("another mount path", "volume", IMPORTED, changes.wrong_path),
    InjectedFault("another path in the variable", "volume", IMPORTED, changes.wrong_variable),
    InjectedFault("no cloud configuration", "pod", ISSUED, changes.without_config),
    InjectedFault("a container that crashes", "pod", ISSUED, changes.crashes),
    InjectedFault("no kubelet", "pod", IMPORTED, changes.without_kubelet),
    InjectedFault(
        "a document that names another file",
        "path",
        ISSUED,
        lambda world: worlds.with_reports(
            worlds.unloaded(world, ISSUED, "credential file /x: found no readable file"), ISSUED, file="/mnt/certs/x"
        ),
    ),
    InjectedFault(
        "a document that names no file",
        "path",
        ISSUED,
        lambda world: worlds.with_reports(
            worlds.unloaded(world, ISSUED, 'cloud config /etc/cloud.conf: found an empty "aadMSI"'), ISSUED, file=None
        ),
    ),
    InjectedFault(
        "a document that is not JSON",
        "document",
        IMPORTED,
        lambda world: worlds.unloaded(world, IMPORTED, "credential document: 1 problem - found no JSON object"),
    ),
    InjectedFault(
        "the document of another client",
        "document",
        IMPORTED,
        lambda world: worlds.with_reports(
            worlds.denied(world, IMPORTED, 403, "403 AuthorizationFailed"), IMPORTED, client_id=OTHER
        ),
    ),
    InjectedFault(
        "a document that expired",
        "document",
        IMPORTED,
        lambda world: worlds.with_reports(
            worlds.refused(world, IMPORTED, "AADSTS7000222: expired"), IMPORTED, expires=world.now - _MINUTES
        ),
    ),
    InjectedFault(
        "a document that was not loaded again",
        "document",
        ISSUED,
        lambda world: worlds.with_reports(worlds.refused(world, ISSUED, NOT_REGISTERED), ISSUED, thumbprint="F" * 40),
    ),
    InjectedFault(
        "issuer closed",
        "issuer",
        GUEST,
        lambda world: of_one_guest(changes.published(keys=(), problem="409 PublicAccessNotPermitted")(world)),
    ),
    InjectedFault(
        "key withdrawn", "published-key", GUEST, lambda world: of_one_guest(changes.published(keys=("kid-1",))(world))
    ),
    InjectedFault("identity gone", "managed-identity", GUEST, changes.without_managed_identity),
    InjectedFault(
        "identity made again",
        "managed-identity",
        GUEST,
        lambda world: worlds.with_managed_identity(world, GUEST, client_id=OTHER),
    ),
    InjectedFault("no trust", "federated-credential", GUEST, changes.trusted(subject="system:serviceaccount:x:y")),
    InjectedFault(
        "trust for another audience",
        "federated-credential",
        GUEST,
        changes.trusted(audiences=("api://AzureADTokenExchange",)),
    ),
    InjectedFault("trust in another issuer", "federated-credential", GUEST, changes.trusting_another_issuer),
    InjectedFault(
        "token refused",
        "exchange",
        GUEST,
        lambda world: worlds.with_token_probe(world, "AADSTS700213: No matching federated identity record found"),
    ),
    InjectedFault("registration removed", "registration", ISSUED, changes.application({"certificates": {}})),
    InjectedFault("registration ended", "registration", ISSUED, changes.registration_ended),
    InjectedFault("application gone", "registration", ISSUED, changes.application(None)),
    InjectedFault("no service principal", "registration", ISSUED, changes.application({"is_enabled": None})),
    InjectedFault("principal disabled", "registration", ISSUED, changes.application({"is_enabled": False})),
    InjectedFault(
        "a managed identity deleted", "sign-in", IMPORTED, changes.refused(IMPORTED, "AADSTS700016: not found")
    ),
    InjectedFault("authority out of reach", "sign-in", ISSUED, changes.refused(ISSUED, "Connection refused")),
    InjectedFault("role gone", "role", IMPORTED, changes.identity_role()),
    InjectedFault("role of somebody else", "role", IMPORTED, changes.identity_role(principal_id=OTHER)),
    InjectedFault("another role", "role", IMPORTED, changes.identity_role(role_definition_id=OTHER)),
    InjectedFault("a custom role lost an action", "actions", ISSUED, changes.custom_role(changes.without_joining)),
    InjectedFault("a custom role takes actions away", "actions", ISSUED, changes.custom_role(changes.all_but_subnets)),
    InjectedFault("no role at one of two vaults", "actions", "kms", changes.at_a_second_vault),
    InjectedFault("denied with its role", "proof-call", IMPORTED, changes.denied(403, "403 Forbidden")),
    InjectedFault("network gone", "proof-call", IMPORTED, changes.denied(404, "404 ResourceNotFound")),
    of_cluster("a condition", "conditions", changes.condition),
)
