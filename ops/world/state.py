"""Reads the expected resources of a stack from its state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from identity import resource_types
from identity.aks.probe_pod import CONTAINER
from identity.catalogue import CONTROL_PLANE, FEDERATED_IDENTITIES
from identity.catalogue_rows import ControlPlaneIdentity, GrantedIdentity, Mount
from identity.naming import control_plane_namespace, resource_group_id, split_arm_id
from identity.outputs import ClusterSide, StackOutputs, cluster_side
from identity.plugin_schema import IssuerDocumentsState, VaultKeyOutputs
from ops.stack.state import State, StateResource, name_of, outputs_of, resources_in
from ops.world.expected import (
    Cluster,
    ExpectedAccess,
    ExpectedIssuer,
    ExpectedMount,
    ExpectedRole,
    FederatedIdentity,
    FederatedTrust,
    GrantedPrincipal,
    Identity,
    OwnVault,
    StackState,
)
from ops.world.ownership import KEY_VAULT_USER, Ownership, ResourceOwner, by_owner

# The Deployments that prove the service accounts of workload identities, by the field of the identity.
_PROBES: Final = {
    row.field: tuple(map(row.workload.probe_name, row.workload.subjects)) for row in CONTROL_PLANE if row.workload
}


def expected(state: State) -> StackState:
    """The expectations of the checks for a stack with this state; empty if it was never brought up."""
    resources = _Resources([resource for resource in resources_in(state) if not resource.get("delete")])
    outputs = outputs_of(state)
    return StackState(
        cluster_side=outputs.get("clusterSide", "stack"),
        vault_id=outputs.get("keyVaultId", ""),
        vault_name=outputs.get("keyVaultName", ""),
        tenant_id=outputs.get("tenantId", ""),
        key_vault_user=outputs.get("keyVaultUserClientId", ""),
        attach_command=outputs.get("keyVaultUserAttachCommand"),
        management_cluster=outputs.get("managementClusterId"),
        clusters=tuple(_clusters(outputs, resources)),
        own_vault=_own_vault(resources.of(ResourceOwner(), resource_types.VAULT)),
        reader_roles=resources.roles(ResourceOwner(), KEY_VAULT_USER),
        pending=tuple(
            f"{operation['type']} {name_of(operation['resource']['urn'])}"
            for operation in state["deployment"].get("pending_operations") or ()
        ),
        is_up="hostedClusters" in outputs,
    )


class _Resources:
    def __init__(self, resources: Sequence[StateResource]) -> None:
        self._resources = resources
        self._ownership = Ownership.of(resources)
        self._by_type: dict[str, dict[ResourceOwner, list[StateResource]]] = {}

    def of(self, owner: ResourceOwner, type_token: str) -> Sequence[StateResource]:
        if type_token not in self._by_type:
            self._by_type[type_token] = by_owner(self._resources, type_token)
        return self._by_type[type_token].get(owner, ())

    def roles(self, owner: ResourceOwner, holder: ResourceOwner) -> tuple[ExpectedRole, ...]:
        """The role assignments of `holder` among an owner's resources."""
        roles = self.of(owner, resource_types.ROLE_ASSIGNMENT)
        return tuple(_role(role) for role in roles if self._ownership.holder(role["urn"]) == holder)


def _role(resource: StateResource) -> ExpectedRole:
    values = {**resource.get("inputs", {}), **resource.get("outputs", {})}
    return ExpectedRole(
        resource=name_of(resource["urn"]),
        id=resource.get("id", ""),
        principal_id=values["principalId"],
        role_definition_id=values["roleDefinitionId"],
        scope=values["scope"],
    )


def _own_vault(vaults: Sequence[StateResource]) -> OwnVault | None:
    if not vaults:
        return None
    properties = vaults[0].get("inputs", {}).get("properties") or {}
    rules = properties.get("networkAcls") or {}
    return OwnVault(
        public_network_access=properties.get("publicNetworkAccess") or "Enabled",
        default_action=rules.get("defaultAction") or "Allow",
    )


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
        trusts=tuple(
            FederatedTrust(issuer=inputs["issuer"], subject=inputs["subject"], audience=inputs["audiences"][0])
            for inputs in (credential.get("inputs") or {} for credential in credentials)
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
        mounts=tuple(_mount(row, mount, side) for mount in row.mounts),
        hosted_cluster_path=row.hosted_cluster_path or (),
    )


def _mount(row: ControlPlaneIdentity, mount: Mount, side: ClusterSide) -> ExpectedMount:
    """The expected mount: in the probe, or in HyperShift's own pod."""
    is_ours = side == "stack"
    return ExpectedMount(
        deployment=row.probe_name(mount) if is_ours else mount.deployment,
        container=CONTAINER if is_ours else mount.container,
        directory=mount.path,
        variable=mount.credential_env,
        document=mount.config.path if mount.config else None,
        document_secret=mount.config.secret if mount.config else None,
        file=mount.file,
    )


_NETWORK: Final = ("vnetID", "subnetID", "securityGroupID")
# The suffix of the assignment at a DNS zone's resource group, and the type whose actions it needs there.
_ZONES: Final = ("-dns", "Microsoft.Network/dnsZones")


def accesses(roles: Sequence[ExpectedRole], spec: Mapping[str, Any]) -> tuple[ExpectedAccess, ...]:
    """The places of one principal, each once; `spec` is the identity part of its HostedCluster."""
    azure = spec.get("platform", {}).get("azure", {})
    managed = resource_group_id(azure.get("subscriptionID", ""), azure.get("resourceGroup", "")).lower()
    places: dict[str, ExpectedAccess] = {}

    def add(role: ExpectedRole, scope: str, type_: str) -> None:
        places[scope.lower()] = ExpectedAccess(principal_id=role.principal_id, scope=scope, type=type_)

    for role in roles:
        if role.resource.endswith(_ZONES[0]):
            add(role, role.scope, _ZONES[1])
        elif "/providers/" in role.scope:
            add(role, role.scope, split_arm_id(role.scope).type)
        elif role.scope.lower() == managed:
            add(role, role.scope, "")
        for arm_id in (azure[key] for key in _NETWORK if key in azure):
            if arm_id.lower().startswith(f"{role.scope.lower()}/"):
                add(role, arm_id, split_arm_id(arm_id).type)
    return tuple(places.values())
