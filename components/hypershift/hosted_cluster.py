"""One hosted cluster: its identities, its cluster side, and the identity part of its HostedCluster specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pulumi

from components.azure.control_plane_identity import ControlPlaneIdentityArgs, ControlPlaneIdentityComponent
from components.azure.credential_store import CredentialStore
from components.azure.data_plane_identity import DataPlaneIdentityArgs, DataPlaneIdentityComponent
from components.azure.entra_application import EntraApplicationArgs
from components.azure.imported_credential import ImportedCredentialArgs
from components.hypershift.hosted_cluster_object import HostedClusterObject, HostedClusterObjectArgs, identity_part
from components.hypershift.hosted_cluster_spec import hosted_cluster_spec, platform
from components.kubernetes.cluster_side import ClusterSide, ClusterSideArgs
from identity import catalogue_rows
from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.catalogue_rows import ProofTarget, RoleGrant, Scope
from identity.naming import control_plane_identity_name, parse_arm_id, resource_group_id, vault_id
from identity.outputs import ControlPlaneIdentityOutput, HostedClusterSpec
from identity.settings import HostedClusterSettings, Settings

# A value in the outputs that Azure gives out (`identity/outputs.py`).
Leaf: TypeAlias = pulumi.Input[str | None]


@dataclass(frozen=True, kw_only=True)
class HostedClusterArgs:
    """Inputs of `HostedCluster`.

    `imported` has the managed identities by field; `deployer` is an object id; `manifest` is the user's part of the
    HostedCluster, None where the stack does not apply one.
    """

    settings: Settings
    cluster: HostedClusterSettings
    store: CredentialStore
    deployer: str
    imported: Mapping[str, ImportedCredentialArgs]
    manifest: Mapping[str, Any] | None


class HostedCluster(pulumi.ComponentResource):
    """Everything of one hosted cluster.

    Outputs: `namespace` (of the HostedCluster), `control_plane` and `data_plane` (by field, as the stack exports them),
    `spec` (identity part of the HostedCluster). Their leaves are texts, known before the first run or Output[str];
    nothing in them is secret.
    """

    def __init__(self, name: str, args: HostedClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:hypershift:HostedCluster", name, None, opts)
        self._name, self._args = name, args
        rows = [row for row in CONTROL_PLANE if args.cluster.identity(row).enabled]
        identities = {row.field: self._control_plane_identity(row) for row in rows}
        self.namespace = args.cluster.namespace
        data_plane = {row.field: self._data_plane_identity(row) for row in DATA_PLANE}
        self.data_plane: dict[str, Leaf] = {field: identity.client_id for field, identity in data_plane.items()}
        self.control_plane = {row.field: self._shown(row, identities[row.field]) for row in rows}
        self.spec: HostedClusterSpec[Leaf] = hosted_cluster_spec(
            platform(args.settings, args.cluster),
            args.cluster,
            vault_name=args.store.vault_name,
            control_plane={field: identity.client_id for field, identity in identities.items()},
            data_plane=self.data_plane,
        )
        if args.settings.cluster_side == "stack":
            self._cluster_side(identities)
        if args.manifest is not None:
            HostedClusterObject(
                f"{name}-hosted-cluster",
                HostedClusterObjectArgs(
                    manifest=args.manifest,
                    identity_part=identity_part(args.cluster, self.spec),
                    protect=args.settings.protect,
                ),
                # A secret that is not in the vault blocks a mount, and with it the whole control plane.
                pulumi.ResourceOptions(
                    parent=self, depends_on=[*identities.values(), *data_plane.values(), *args.store.key_vault_user]
                ),
            )
        self.register_outputs({"control_plane": self.control_plane, "data_plane": self.data_plane, "spec": self.spec})

    def _control_plane_identity(self, row: catalogue_rows.ControlPlaneIdentity) -> ControlPlaneIdentityComponent:
        settings, cluster = self._args.settings, self._args.cluster
        grant = row.grant(settings.roles)
        return ControlPlaneIdentityComponent(
            control_plane_identity_name(self._name, row.field),
            ControlPlaneIdentityArgs(
                source=self._source(row),
                secret_name=cluster.identity(row).secret_name,
                object_encoding=cluster.object_encoding,
                store=self._args.store,
                infra_id=cluster.infra_id,
                component=row.component,
                role=grant.role,
                scopes=scope_ids(settings, cluster, grant),
                subscription_id=settings.subscription_id,
                tags=settings.tags,
            ),
            pulumi.ResourceOptions(parent=self),
        )

    def _source(self, row: catalogue_rows.ControlPlaneIdentity) -> EntraApplicationArgs | ImportedCredentialArgs:
        settings, cluster = self._args.settings, self._args.cluster
        if cluster.identity(row).source == "managed-identity":
            return self._args.imported[row.field]
        return EntraApplicationArgs(
            display_name=f"{row.secret_stem}-{cluster.name}",
            tenant_id=settings.tenant_id,
            cloud=settings.cloud,
            credentials=settings.credentials,
            owner=self._args.deployer,
            protect=settings.protect,
        )

    def _data_plane_identity(self, row: catalogue_rows.DataPlaneIdentity) -> DataPlaneIdentityComponent:
        settings, cluster = self._args.settings, self._args.cluster
        return DataPlaneIdentityComponent(
            f"{self._name}-data-plane-{row.name}",
            DataPlaneIdentityArgs(
                row=row,
                cluster=cluster.name,
                infra_id=cluster.infra_id,
                issuer_url=cluster.issuer_url,
                subscription_id=settings.subscription_id,
                resource_group=settings.resource_group,
                location=settings.location,
                scopes=scope_ids(settings, cluster, row.grant),
                tags=settings.tags,
            ),
            pulumi.ResourceOptions(parent=self),
        )

    def _shown(
        self, row: catalogue_rows.ControlPlaneIdentity, identity: ControlPlaneIdentityComponent
    ) -> ControlPlaneIdentityOutput[Leaf]:
        return {
            "clientID": identity.client_id,
            "credentialsSecretName": identity.secret_name,
            "objectEncoding": self._args.cluster.object_encoding,
            "secretProviderClass": row.secret_provider_class,
            "notAfter": identity.shown["notAfter"],
            "renewAfter": identity.shown["renewAfter"],
            "thumbprint": identity.shown["thumbprint"],
        }

    def _cluster_side(self, identities: Mapping[str, ControlPlaneIdentityComponent]) -> None:
        settings, cluster = self._args.settings, self._args.cluster
        key = cluster.kms.active_key
        subnet = parse_arm_id(cluster.subnet_id)
        ClusterSide(
            f"{self._name}-cluster-side",
            ClusterSideArgs(
                cluster=cluster.name,
                namespace=cluster.namespace_name,
                cloud=settings.cloud,
                platform=platform(settings, cluster),
                store=self._args.store,
                object_encoding=cluster.object_encoding,
                identities=identities,
                probe_image=settings.probe.image or "",
                proof_target=ProofTarget(
                    subscription=settings.subscription_id,
                    managed=cluster.resource_group,
                    vnet_group=subnet.resource_group,
                    vnet=subnet.names[0],
                    subnet=subnet.name,
                    key_vault=key.key_vault_name,
                    key=key.key_name,
                    key_version=key.key_version,
                ),
                workloads=cluster.workloads,
            ),
            pulumi.ResourceOptions(parent=self),
        )


def scope_ids(settings: Settings, cluster: HostedClusterSettings, grant: RoleGrant) -> dict[str, str]:
    """ARM ids of the grant's scopes by a short word for each. Resource groups, as HyperShift's CLI scopes them."""

    def group(name: str) -> str:
        return resource_group_id(settings.subscription_id, name)

    every = {
        Scope.MANAGED: group(cluster.resource_group),
        Scope.NSG: group(parse_arm_id(cluster.security_group_id).resource_group),
        Scope.VNET: group(parse_arm_id(cluster.vnet_id).resource_group),
        Scope.DNS: group(cluster.dns_zone_resource_group),
        Scope.KMS_VAULT: vault_id(
            settings.subscription_id, cluster.kms.key_vault_resource_group, cluster.kms.active_key.key_vault_name
        ),
    }
    return {scope.name.lower().replace("_", "-"): every[scope] for scope in grant.scopes}
