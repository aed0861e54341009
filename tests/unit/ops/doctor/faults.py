"""The injected faults: what each does to a healthy world, and the one check that must be blamed for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
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
    change: Change
    identity: str | None = None
    cluster: str | None = CLUSTER

    @property
    def blamed(self) -> tuple[str | None, str | None, str]:
        return self.cluster, self.identity, self.check


of_stack, of_cluster = partial(InjectedFault, cluster=None), InjectedFault
of_imported, of_issued, of_guest = (partial(InjectedFault, identity=field) for field in (IMPORTED, ISSUED, GUEST))


def of_one_guest(world: StackWorld) -> StackWorld:
    """The stack with one identity of the guest cluster: what is wrong with an issuer is wrong with all of them."""
    [cluster] = worlds.state(world).clusters
    return worlds.with_state(world, clusters=(replace(cluster, guests=(worlds.guest(world, GUEST),)),))


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
    of_issued("a client secret of somebody", "added-credentials", changes.added("client secret x of y (z)")),
    of_cluster("a refused value of a cluster", "settings", changes.value("hostedClusters", 0, "vnetID")),
    of_stack("a refused value", "settings", changes.value("location")),
    of_stack("never brought up", "brought-up", changes.never_up),
    InjectedFault("a new cluster", "brought-up", changes.enabled(hc2=(IMPORTED,)), cluster="hc2"),
    of_cluster("a new identity", "brought-up", changes.enabled(hc1=("imageRegistry",))),
    of_imported(
        "another secret in the HostedCluster", "hosted-cluster", changes.hosted_cluster("credentialsSecretName")
    ),
    of_imported("another client in the HostedCluster", "hosted-cluster", changes.hosted_cluster("clientID")),
    of_imported("an identity missing in the HostedCluster", "hosted-cluster", changes.hosted_cluster(None)),
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
    of_imported("reader's role on a secret", "secret-reader", changes.secret_reader(None)),
    of_stack("no rotation of secrets", "secret-rotation", changes.add_on(enableSecretRotation="false")),
    of_stack("a slow poll", "secret-rotation", changes.add_on(rotationPollInterval="12h")),
    of_imported("secret deleted", "secret", changes.secret_gone),
    of_imported("secret disabled", "secret", changes.secret(enabled=False)),
    of_issued("secret expired", "secret", changes.secret_expired),
    of_imported(
        "secret of the future", "secret", lambda world: changes.secret(not_before=world.now + 60 * _MINUTES)(world)
    ),
    of_imported("another certificate", "secret", changes.secret(tags={"thumbprint": "F" * 40})),
    of_imported("class deleted", "class", changes.class_gone),
    of_imported("class of another tenant", "class", changes.class_parameters(tenantId=OTHER)),
    of_imported("class of another vault", "class", changes.class_parameters(keyvaultName="kv-elsewhere")),
    of_imported("class as another reader", "class", changes.class_parameters(userAssignedIdentityID=OTHER)),
    of_imported("class with pod identity", "class", changes.class_parameters(usePodIdentity="true")),
    of_imported("class with another encoding", "class", changes.objects("utf-8", "base64")),
    of_imported("class with another secret", "class", changes.objects("objectName: {}", "objectName: x")),
    of_imported("class that is not YAML", "class", changes.class_parameters(objects="array: [")),
    of_imported("reader not on the nodes", "mount", changes.unmounted(UNASSIGNED)),
    of_imported("role not applied yet", "mount", changes.unmounted(FORBIDDEN)),
    of_imported("value in another encoding", "mount", changes.unmounted("base64 decoding of x failed: illegal data")),
    of_imported(
        "no driver", "mount", changes.unmounted("driver name x not found in the list of registered CSI drivers")
    ),
    of_issued("rotation fails", "mount", changes.old_version),
    of_imported("pod without volume", "volume", changes.without_volume),
    of_imported("volume of another class", "volume", changes.other_class),
    of_imported("no pod", "volume", changes.without_pod),
    of_imported("another mount path", "volume", changes.wrong_path),
    of_imported("another path in the variable", "volume", changes.wrong_variable),
    of_issued("no cloud configuration", "pod", changes.without_config),
    of_issued("a container that crashes", "pod", changes.crashes),
    of_imported("no kubelet", "pod", changes.without_kubelet),
    of_issued(
        "a document that names another file",
        "path",
        lambda world: worlds.with_reports(
            worlds.unloaded(world, ISSUED, "credential file /x: found no readable file"), ISSUED, file="/mnt/certs/x"
        ),
    ),
    of_issued(
        "a document that names no file",
        "path",
        lambda world: worlds.with_reports(
            worlds.unloaded(world, ISSUED, 'cloud config /etc/cloud.conf: found an empty "aadMSI"'), ISSUED, file=None
        ),
    ),
    of_imported(
        "a document that is not JSON",
        "document",
        lambda world: worlds.unloaded(world, IMPORTED, "credential document: 1 problem - found no JSON object"),
    ),
    of_imported(
        "the document of another client",
        "document",
        lambda world: worlds.with_reports(
            worlds.denied(world, IMPORTED, 403, "403 AuthorizationFailed"), IMPORTED, client_id=OTHER
        ),
    ),
    of_imported(
        "a document that expired",
        "document",
        lambda world: worlds.with_reports(
            worlds.refused(world, IMPORTED, "AADSTS7000222: expired"), IMPORTED, expires=world.now - _MINUTES
        ),
    ),
    of_issued(
        "a document that was not loaded again",
        "document",
        lambda world: worlds.with_reports(worlds.refused(world, ISSUED, NOT_REGISTERED), ISSUED, thumbprint="F" * 40),
    ),
    of_guest(
        "issuer closed",
        "issuer",
        lambda world: of_one_guest(changes.published(keys=(), problem="409 PublicAccessNotPermitted")(world)),
    ),
    of_guest("key withdrawn", "published-key", lambda world: of_one_guest(changes.published(keys=("kid-1",))(world))),
    of_guest("identity gone", "managed-identity", changes.without_managed_identity),
    of_guest(
        "identity made again",
        "managed-identity",
        lambda world: worlds.with_managed_identity(world, GUEST, client_id=OTHER),
    ),
    of_guest("no trust", "federated-credential", changes.trusted(subject="system:serviceaccount:x:y")),
    of_guest(
        "trust for another audience", "federated-credential", changes.trusted(audiences=("api://AzureADTokenExchange",))
    ),
    of_guest("trust in another issuer", "federated-credential", changes.trusting_another_issuer),
    of_guest(
        "token refused",
        "exchange",
        lambda world: worlds.with_token_probe(world, "AADSTS700213: No matching federated identity record found"),
    ),
    of_issued("registration removed", "registration", changes.application({"certificates": {}})),
    of_issued("registration ended", "registration", changes.registration_ended),
    of_issued("application gone", "registration", changes.application(None)),
    of_issued("no service principal", "registration", changes.application({"is_enabled": None})),
    of_issued("principal disabled", "registration", changes.application({"is_enabled": False})),
    of_imported("a managed identity deleted", "sign-in", changes.refused(IMPORTED, "AADSTS700016: not found")),
    of_issued("authority out of reach", "sign-in", changes.refused(ISSUED, "Connection refused")),
    of_imported("role gone", "role", changes.identity_role()),
    of_imported("role of somebody else", "role", changes.identity_role(principal_id=OTHER)),
    of_imported("another role", "role", changes.identity_role(role_definition_id=OTHER)),
    of_issued("a custom role lost an action", "actions", changes.custom_role(changes.without_joining)),
    of_issued("a custom role takes actions away", "actions", changes.custom_role(changes.all_but_subnets)),
    InjectedFault("no role at one of two vaults", "actions", changes.at_a_second_vault, "kms"),
    of_imported("denied with its role", "proof-call", changes.denied(403, "403 Forbidden")),
    of_imported("network gone", "proof-call", changes.denied(404, "404 ResourceNotFound")),
    of_cluster("a condition", "conditions", changes.condition),
)
