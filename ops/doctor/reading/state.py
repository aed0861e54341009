"""What a stack made, out of its state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, FEDERATED_IDENTITIES
from identity.catalogue_rows import ControlPlaneIdentity, GrantedIdentity, Mount
from identity.naming import (
    control_plane_identity_name,
    control_plane_namespace,
    federated_identity_name,
    secret_reader_name,
)
from identity.plugin_schema import IssuerDocumentsState, VaultKeyOutputs
from ops.doctor.model.expected import (
    Cluster,
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
from ops.doctor.reading.accesses import accesses
from ops.stack.state import State, StateResource, name_of, outputs_of

# The component in `components/stack.py` that gives the key-vault-user its role.
_READER: Final = "key-vault-user"
# The container of `components/kubernetes/credential_probe.py`.
_PROBE: Final = "credential-probe"


def expected(state: State) -> StackState:
    """What the checks expect of a stack with this state; of one that was never brought up, nothing."""
    deployment = state["deployment"]
    resources = [each for each in deployment.get("resources") or () if not each.get("delete")]
    outputs: Mapping[str, Any] = outputs_of(state)
    side = outputs.get("clusterSide", "stack")
    roles = [_role(each) for each in resources if each["type"] == resource_types.ROLE_ASSIGNMENT]
    secrets = {
        name_of(each["urn"]): each.get("inputs") or {}
        for each in resources
        if each["type"] == resource_types.CREDENTIAL_SECRET
    }
    return StackState(
        cluster_side=side,
        vault_id=outputs.get("keyVaultId", ""),
        vault_name=outputs.get("keyVaultName", ""),
        tenant_id=outputs.get("tenantId", ""),
        key_vault_user=outputs.get("keyVaultUserClientId", ""),
        attach_command=outputs.get("keyVaultUserAttachCommand"),
        management_cluster=outputs.get("managementClusterId"),
        clusters=tuple(_clusters(outputs.get("hostedClusters") or {}, side, roles, secrets, resources)),
        own_vault=_own_vault(resources),
        reader_roles=tuple(_of(f"{_READER}-roles", roles)),
        pending=tuple(
            f"{each['type']} {name_of(each['resource']['urn'])}" for each in deployment.get("pending_operations") or ()
        ),
        is_up="hostedClusters" in outputs,
    )


def _role(resource: StateResource) -> ExpectedRole:
    found = {**resource.get("inputs", {}), **resource.get("outputs", {})}
    return ExpectedRole(
        resource=name_of(resource["urn"]),
        id=resource.get("id", ""),
        principal_id=found["principalId"],
        role_definition_id=found["roleDefinitionId"],
        scope=found["scope"],
    )


def _of(grants: str, roles: Sequence[ExpectedRole]) -> Iterator[ExpectedRole]:
    """Those of one `RoleGrants`, by its name: each ends with a word for its scope."""
    return (role for role in roles if role.resource.startswith(f"{grants}-"))


def _own_vault(resources: Sequence[StateResource]) -> OwnVault | None:
    inputs = next((each.get("inputs", {}) for each in resources if each["type"] == resource_types.VAULT), None)
    if inputs is None:
        return None
    properties = inputs.get("properties") or {}
    rules = properties.get("networkAcls") or {}
    return OwnVault(
        public_network_access=properties.get("publicNetworkAccess") or "Enabled",
        default_action=rules.get("defaultAction") or "Allow",
    )


def _clusters(
    described: Mapping[str, Any],
    side: str,
    roles: Sequence[ExpectedRole],
    secrets: Mapping[str, Mapping[str, Any]],
    resources: Sequence[StateResource],
) -> Iterator[Cluster]:
    for name, cluster in described.items():
        namespace = control_plane_namespace(cluster["namespace"], name)
        spec = cluster.get("hostedClusterSpec") or {}
        issuer = _issuer(name, cluster, spec.get("issuerURL", ""), resources)
        yield Cluster(
            cluster=name,
            home=cluster["namespace"],
            namespace=namespace,
            identities=tuple(
                _identity(
                    _granted(component := control_plane_identity_name(name, row.field), name, row, roles, spec),
                    tuple(_of(secret_reader_name(component), roles)),
                    namespace,
                    row,
                    found | _delivered(name, row, secrets),
                    side,
                )
                for row in CONTROL_PLANE
                if (found := cluster["controlPlane"].get(row.field)) is not None
            ),
            guests=tuple(
                _federated(
                    _granted(component := federated_identity_name(name, row.kind, row.name), name, row, roles, spec),
                    component,
                    client_id,
                    issuer,
                    resources,
                )
                for row in FEDERATED_IDENTITIES
                if (client_id := cluster.get("dataPlane", {}).get(row.field)) is not None
            ),
        )


def _issuer(
    name: str, cluster: Mapping[str, Any], address: str, resources: Sequence[StateResource]
) -> ExpectedIssuer | None:
    """The issuer of a cluster; None for a managed cluster whose documents the stack does not publish."""
    documents = (
        cast(IssuerDocumentsState, each.get("inputs", {}))
        for each in resources
        if each["type"] == resource_types.ISSUER_DOCUMENTS
    )
    if published := next((each["keys"] for each in documents if each.get("issuer") == address), None):
        return ExpectedIssuer(address=address, keys=tuple(key["jwk"]["kid"] for key in published), is_ours=True)
    if cluster["controlPlane"] or not address:
        return None
    own = f"{name}-signing-key"
    keys = [
        cast(VaultKeyOutputs[str], each.get("outputs", {}))["keyId"]
        for each in resources
        if each["type"] == resource_types.SIGNING_KEY and name_of(each["urn"]) == own
    ]
    return ExpectedIssuer(address=address, keys=tuple(keys), is_ours=False)


def _federated(
    granted: GrantedPrincipal,
    component: str,
    client_id: str,
    issuer: ExpectedIssuer | None,
    resources: Sequence[StateResource],
) -> FederatedIdentity:
    ids = {name_of(each["urn"]): each.get("id", "") for each in resources}
    credentials = [
        each.get("inputs") or {}
        for each in resources
        if each["type"] == resource_types.FEDERATED_CREDENTIAL
        and name_of(each["urn"]).startswith(f"{component}-federated-")
    ]
    return FederatedIdentity(
        **vars(granted),
        resource_id=ids.get(f"{component}-identity", ""),
        client_id=client_id,
        trusts=tuple(
            FederatedTrust(issuer=each["issuer"], subject=each["subject"], audience=each["audiences"][0])
            for each in credentials
        ),
        issuer=issuer,
    )


def _delivered(
    cluster: str, row: ControlPlaneIdentity, secrets: Mapping[str, Mapping[str, Any]]
) -> dict[str, str | None]:
    """What the stack wrote last into the vault. The outputs may be those of the last run that did not fail."""
    written = secrets.get(f"{control_plane_identity_name(cluster, row.field)}-credential-secret")
    return {} if written is None else {name: written.get(name) for name in ("thumbprint", "generation")}


def _granted(
    component: str, cluster: str, row: GrantedIdentity, roles: Sequence[ExpectedRole], spec: Mapping[str, Any]
) -> GrantedPrincipal:
    own = tuple(_of(f"{component}-roles", roles))
    return GrantedPrincipal(
        cluster=cluster,
        identity=row.field,
        roles=own,
        role_guid=row.builtin.role.guid,
        accesses=accesses(own, spec),
    )


def _identity(
    granted: GrantedPrincipal,
    readers: tuple[ExpectedRole, ...],
    namespace: str,
    row: ControlPlaneIdentity,
    output: Mapping[str, Any],
    side: str,
) -> Identity:
    return Identity(
        **vars(granted),
        namespace=namespace,
        client_id=output["clientID"],
        secret=output["credentialsSecretName"],
        object_encoding=output["objectEncoding"],
        secret_provider_class=output["secretProviderClass"],
        thumbprint=output.get("thumbprint"),
        generation=output.get("generation"),
        reader_roles=readers,
        mounts=tuple(_mount(row, mount, side) for mount in row.mounts),
        hosted_cluster_path=row.hosted_cluster_path or (),
    )


def _mount(row: ControlPlaneIdentity, mount: Mount, side: str) -> ExpectedMount:
    """Where the credential is expected: in the probe of the mount, or in HyperShift's own pod."""
    is_ours = side == "stack"
    return ExpectedMount(
        deployment=row.probe_name(mount) if is_ours else mount.deployment,
        container=_PROBE if is_ours else mount.container,
        directory=mount.path,
        variable=mount.credential_env,
        document=mount.config.path if mount.config else None,
        document_secret=mount.config.secret if mount.config else None,
        file=mount.file,
    )
