"""The resources of a stack by its state and its outputs, which the checks expect to exist, and their reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast

from identity import resource_types
from identity.aks.probe_pod import CONTAINER
from identity.azure.records import FederatedCredentialRecord, RoleAssignmentRecord
from identity.catalogue import CONTROL_PLANE, FEDERATED_IDENTITIES
from identity.catalogue_rows import ControlPlaneIdentity, GrantedIdentity, Mount
from identity.naming import control_plane_namespace, resource_group_id, split_arm_id
from identity.outputs import ClusterSide, StackOutputs, cluster_side
from identity.plugin_schema import IssuerDocumentsState, VaultKeyOutputs
from ops.stack.state import State, StateResource, name_of, outputs_of, resources_in
from ops.world.ownership import KEY_VAULT_USER, Ownership, ResourceOwner

# The Deployments that prove the service accounts of workload identities, by the field of the identity.
_PROBES: Final = {
    row.field: tuple(map(row.workload.probe_name, row.workload.subjects)) for row in CONTROL_PLANE if row.workload
}


@dataclass(frozen=True, kw_only=True)
class StateRole(RoleAssignmentRecord):
    """A role assignment in the state; `resource` is its name in the program."""

    resource: str


@dataclass(frozen=True, kw_only=True)
class ExpectedAccess:
    """A scope where an identity needs the actions of its role on one resource type and its child types.

    With an empty `type` it needs all actions there that no other scope has.
    """

    principal_id: str
    scope: str
    type: str

    @property
    def key(self) -> str:
        """The key, in the roles that were read, of the principal's roles at the scope and above."""
        return f"{self.principal_id} at {self.scope}"


@dataclass(frozen=True, kw_only=True)
class GrantedPrincipal:
    """An identity of one hosted cluster with its role assignments.

    `role_guid` is production's role, whose actions it needs with any role; `accesses` has the scopes.
    """

    cluster: str
    identity: str  # its field in the HostedCluster API
    roles: tuple[StateRole, ...]
    role_guid: str
    accesses: tuple[ExpectedAccess, ...]

    @property
    def owner(self) -> ResourceOwner:
        return ResourceOwner(self.cluster, self.identity)


@dataclass(frozen=True, kw_only=True)
class ExpectedIssuer:
    """An OIDC issuer; `keys` are the ids of the keys that it must publish, empty if the stack knows none.

    `is_ours`: the stack publishes its documents.
    """

    address: str
    keys: tuple[str, ...]
    is_ours: bool


@dataclass(frozen=True, kw_only=True)
class FederatedIdentity(GrantedPrincipal):
    """A managed identity that service accounts of a hosted cluster use.

    `issuer` is None for a managed cluster whose issuer the stack does not publish.
    """

    resource_id: str  # ARM id
    client_id: str
    credentials: tuple[FederatedCredentialRecord, ...]
    issuer: ExpectedIssuer | None
    probes: tuple[str, ...] = ()  # Deployments that sign in with its tokens, on a local stack alone


@dataclass(frozen=True, kw_only=True)
class Identity(GrantedPrincipal):
    """One control-plane identity of one hosted cluster.

    `generation` and `thumbprint` belong to the certificate that the stack delivered last, or to the outputs if another
    tool stored it; only certificates from the stack have a generation. `reader_roles` are the key-vault-user's on this
    secret, with `keyVaultUserScope: secrets`.
    """

    namespace: str  # of the control plane
    client_id: str
    secret: str
    object_encoding: str
    secret_provider_class: str
    thumbprint: str | None
    generation: str | None
    reader_roles: tuple[StateRole, ...]
    mounts: tuple[Mount, ...]  # in the pods of the probes, or in HyperShift's own
    # From `spec` of a HostedCluster to the object that names the identity; none if the API has no field for it.
    hosted_cluster_path: tuple[str, ...]

    def file_of(self, mount: Mount) -> str:
        """The path of the credential in a pod with this mount."""
        return f"{mount.path}/{mount.file or self.secret}"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One hosted cluster; `home` is the namespace of its HostedCluster, `namespace` that of its control plane.

    `guests` are the identities whose pods have tokens of service accounts; `side` creates the control plane's objects.
    `listed` are the ARM ids of the managed identities in the outputs: the optional ones, and workload identities.
    """

    cluster: str
    home: str
    namespace: str
    side: ClusterSide
    identities: tuple[Identity, ...]
    guests: tuple[FederatedIdentity, ...] = ()
    listed: tuple[str, ...] = ()
    identity: None = None


@dataclass(frozen=True, kw_only=True)
class VaultRecord:
    """A key vault, as ARM has it or as the stack makes it; the network rules are as ARM spells them."""

    tenant_id: str
    uses_roles: bool
    public_network_access: str
    default_action: str

    @classmethod
    def of(cls, resource: Mapping[str, Any]) -> Self:
        """Microsoft.KeyVault/vaults, of ARM's answer or of a state's inputs."""
        properties = resource.get("properties") or {}
        return cls(
            tenant_id=properties.get("tenantId", ""),
            uses_roles=bool(properties.get("enableRbacAuthorization")),
            public_network_access=properties.get("publicNetworkAccess") or "Enabled",
            default_action=(properties.get("networkAcls") or {}).get("defaultAction") or "Allow",
        )


@dataclass(frozen=True, kw_only=True)
class StackState:
    """A stack that was brought up.

    `management_cluster` is its ARM id, None without one. `own_vault` is None with a shared stack's vault.
    `reader_roles` are the key-vault-user's on the whole vault: none with `keyVaultUserScope: secrets` or a shared
    stack's vault. `pending` describes the operations that a killed engine has interrupted.
    """

    cluster_side: ClusterSide  # of the clusters that sign in with certificates
    vault_id: str
    vault_name: str
    tenant_id: str
    key_vault_user: str  # client id
    attach_command: str | None
    management_cluster: str | None
    clusters: tuple[Cluster, ...]
    own_vault: VaultRecord | None
    reader_roles: tuple[StateRole, ...]
    pending: tuple[str, ...] = ()
    is_up: bool = True  # False: it was never brought up, and everything else is empty

    @property
    def identities(self) -> tuple[Identity, ...]:
        """The control-plane identities of all clusters, in the catalogue's order."""
        return tuple(identity for cluster in self.clusters for identity in cluster.identities)

    @property
    def guests(self) -> tuple[FederatedIdentity, ...]:
        """The guests of all clusters, in the catalogue's order."""
        return tuple(guest for cluster in self.clusters for guest in cluster.guests)

    @property
    def principals(self) -> tuple[GrantedPrincipal, ...]:
        return (*self.identities, *self.guests)


def expected(state: State) -> StackState:
    """The expectations of the checks for a stack with this state; empty if it was never brought up."""
    resources = _Resources([resource for resource in resources_in(state) if not resource.get("delete")])
    outputs, vaults = outputs_of(state), resources.of(ResourceOwner(), resource_types.VAULT)
    return StackState(
        cluster_side=outputs.get("clusterSide", "stack"),
        vault_id=outputs.get("keyVaultId", ""),
        vault_name=outputs.get("keyVaultName", ""),
        tenant_id=outputs.get("tenantId", ""),
        key_vault_user=outputs.get("keyVaultUserClientId", ""),
        attach_command=outputs.get("keyVaultUserAttachCommand"),
        management_cluster=outputs.get("managementClusterId"),
        clusters=tuple(_clusters(outputs, resources)),
        own_vault=next((VaultRecord.of(vault.get("inputs", {})) for vault in vaults), None),
        reader_roles=resources.roles(ResourceOwner(), KEY_VAULT_USER),
        pending=tuple(
            f"{operation['type']} {name_of(operation['resource']['urn'])}"
            for operation in state["deployment"].get("pending_operations") or ()
        ),
        is_up="hostedClusters" in outputs,
    )


class _Resources:
    """The resources of a state by owner and type, in the order of the state."""

    def __init__(self, resources: Sequence[StateResource]) -> None:
        self._ownership = Ownership.of(resources)
        self._by_place: dict[tuple[ResourceOwner, str], list[StateResource]] = defaultdict(list)
        for resource in resources:
            self._by_place[self._ownership.owner(resource["urn"]), resource["type"]].append(resource)

    def of(self, owner: ResourceOwner, type_token: str) -> Sequence[StateResource]:
        return self._by_place.get((owner, type_token), ())

    def roles(self, owner: ResourceOwner, holder: ResourceOwner) -> tuple[StateRole, ...]:
        """The role assignments of `holder` among an owner's resources."""
        roles = self.of(owner, resource_types.ROLE_ASSIGNMENT)
        return tuple(_role(role) for role in roles if self._ownership.holder(role["urn"]) == holder)


def _role(resource: StateResource) -> StateRole:
    values = {**resource.get("inputs", {}), **resource.get("outputs", {})}
    record = RoleAssignmentRecord.of({"id": resource.get("id", ""), "properties": values})
    return StateRole(**vars(record), resource=name_of(resource["urn"]))


def _clusters(outputs: StackOutputs[str], resources: _Resources) -> Iterator[Cluster]:
    for name, cluster in (outputs.get("hostedClusters") or {}).items():
        namespace = control_plane_namespace(cluster["namespace"], name)
        side = cluster_side(outputs, cluster)
        spec = cluster.get("hostedClusterSpec") or {}
        issuer = _issuer(ResourceOwner(name), cluster, spec.get("issuerURL", ""), resources)
        yield Cluster(
            cluster=name,
            home=cluster["namespace"],
            namespace=namespace,
            side=side,
            identities=tuple(
                _identity(_granted(name, row, resources, spec), resources, namespace, row, output, side)
                for row in CONTROL_PLANE
                if (output := cluster["controlPlane"].get(row.field)) is not None
            ),
            guests=tuple(
                _federated(_granted(name, row, resources, spec), client_id, issuer, resources)
                for row in FEDERATED_IDENTITIES
                if (client_id := cluster.get("dataPlane", {}).get(row.field)) is not None
            ),
            listed=tuple(managed["resourceID"] for managed in cluster.get("managedIdentities", {}).values()),
        )


def _issuer(
    owner: ResourceOwner, cluster: Mapping[str, Any], address: str, resources: _Resources
) -> ExpectedIssuer | None:
    """The issuer of a cluster; None for a managed cluster whose documents the stack does not publish."""
    for published in resources.of(owner, resource_types.ISSUER_DOCUMENTS):
        keys = cast(IssuerDocumentsState, published.get("inputs", {}))["keys"]
        return ExpectedIssuer(address=address, keys=tuple(key["jwk"]["kid"] for key in keys), is_ours=True)
    if cluster["controlPlane"] or not address:
        return None
    key_ids = (
        cast(VaultKeyOutputs[str], key.get("outputs", {}))["keyId"]
        for key in resources.of(owner, resource_types.SIGNING_KEY)
    )
    return ExpectedIssuer(address=address, keys=tuple(key_ids), is_ours=False)


def _federated(
    granted: GrantedPrincipal, client_id: str, issuer: ExpectedIssuer | None, resources: _Resources
) -> FederatedIdentity:
    identities = resources.of(granted.owner, resource_types.MANAGED_IDENTITY)
    credentials = resources.of(granted.owner, resource_types.FEDERATED_CREDENTIAL)
    return FederatedIdentity(
        **vars(granted),
        resource_id=next((identity.get("id", "") for identity in identities), ""),
        client_id=client_id,
        credentials=tuple(
            FederatedCredentialRecord.of(
                {"id": found.get("id", ""), "name": name_of(found["urn"]), "properties": found.get("inputs") or {}}
            )
            for found in credentials
        ),
        issuer=issuer,
        probes=_PROBES.get(granted.identity, ()),
    )


def _granted(cluster: str, row: GrantedIdentity, resources: _Resources, spec: Mapping[str, Any]) -> GrantedPrincipal:
    owner = ResourceOwner(cluster, row.field)
    own = resources.roles(owner, owner)
    return GrantedPrincipal(
        cluster=cluster,
        identity=row.field,
        roles=own,
        role_guid=row.builtin.role.guid,
        accesses=accesses(own, spec),
    )


def _identity(
    granted: GrantedPrincipal,
    resources: _Resources,
    namespace: str,
    row: ControlPlaneIdentity,
    output: Mapping[str, Any],
    side: ClusterSide,
) -> Identity:
    # The last delivery to the vault: the outputs may be those of an earlier run, if later ones failed.
    secrets = resources.of(granted.owner, resource_types.CREDENTIAL_SECRET)
    delivered = (secrets[-1].get("inputs") or {}) if secrets else output
    return Identity(
        **vars(granted),
        namespace=namespace,
        client_id=output["clientID"],
        secret=output["credentialsSecretName"],
        object_encoding=output["objectEncoding"],
        secret_provider_class=output["secretProviderClass"],
        thumbprint=delivered.get("thumbprint"),
        generation=delivered.get("generation"),
        reader_roles=resources.roles(granted.owner, KEY_VAULT_USER),
        mounts=tuple(
            replace(mount, deployment=row.probe_name(mount), container=CONTAINER) if side == "stack" else mount
            for mount in row.mounts
        ),
        hosted_cluster_path=row.hosted_cluster_path or (),
    )


_NETWORK: Final = ("vnetID", "subnetID", "securityGroupID")
# The suffix of the assignment at a DNS zone's resource group, and the type whose actions it needs there.
_ZONES: Final = ("-dns", "Microsoft.Network/dnsZones")


def accesses(roles: Sequence[StateRole], spec: Mapping[str, Any]) -> tuple[ExpectedAccess, ...]:
    """The places of one principal, each once; `spec` is the identity part of its HostedCluster."""
    azure = spec.get("platform", {}).get("azure", {})
    managed = resource_group_id(azure.get("subscriptionID", ""), azure.get("resourceGroup", "")).lower()
    places: dict[str, ExpectedAccess] = {}
    for role in roles:
        types: dict[str, str] = {}
        if role.resource.endswith(_ZONES[0]):
            types[role.scope] = _ZONES[1]
        elif "/providers/" in role.scope:
            types[role.scope] = split_arm_id(role.scope).type
        elif role.scope.lower() == managed:
            types[role.scope] = ""
        within = (azure[key] for key in _NETWORK if azure.get(key, "").lower().startswith(f"{role.scope.lower()}/"))
        types |= {arm_id: split_arm_id(arm_id).type for arm_id in within}
        for scope, type_ in types.items():
            places[scope.lower()] = ExpectedAccess(principal_id=role.principal_id, scope=scope, type=type_)
    return tuple(places.values())
