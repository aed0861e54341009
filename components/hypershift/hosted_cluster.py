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
from components.hypershift.hosted_cluster_spec import hosted_cluster_spec
from components.kubernetes.cloud_config import Platform
from components.kubernetes.cluster_side import ClusterSide, ClusterSideArgs
from identity import catalogue_rows
from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.naming import control_plane_identity_name
from identity.outputs import ControlPlaneIdentityOutput, HostedClusterSpec
from identity.settings import HostedClusterSettings, Settings

# A value in the outputs that Azure assigns (`identity/outputs.py`).
Leaf: TypeAlias = pulumi.Input[str | None]


@dataclass(frozen=True, kw_only=True)
class HostedClusterArgs:
    """Inputs of `HostedCluster`.

    `imported` has the managed identities by field; `deployer` is an object id; `manifest` is the user's part of the
    HostedCluster, None if the stack does not apply one.
    """

    settings: Settings
    cluster: HostedClusterSettings
    store: CredentialStore
    deployer: str
    imported: Mapping[str, ImportedCredentialArgs]
    manifest: Mapping[str, Any] | None


class HostedCluster(pulumi.ComponentResource):
    """Everything of one hosted cluster.

    Outputs (`identity/outputs.py` has their shapes): `namespace` of the HostedCluster; `control_plane` and `data_plane`
    by field; `spec`, the identity part of the HostedCluster. Nothing in them is secret.
    """

    def __init__(self, name: str, args: HostedClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:hypershift:HostedCluster", name, None, opts)
        self._name, self._args = name, args
        rows = [row for row in CONTROL_PLANE if args.cluster.identity(row).enabled]
        identities = {row.field: self._control_plane_identity(row) for row in rows}
        self.namespace = args.cluster.namespace
        data_plane = {row.field: self._data_plane_identity(row) for row in DATA_PLANE}
        self.data_plane: dict[str, Leaf] = {field: identity.client_id for field, identity in data_plane.items()}
        self.control_plane = {row.field: self._exported(row, identities[row.field]) for row in rows}
        self.spec: HostedClusterSpec[Leaf] = hosted_cluster_spec(
            Platform.of(args.settings, args.cluster),
            args.cluster,
            vault_name=args.store.vault_name,
            control_plane={field: identity.client_id for field, identity in identities.items()},
            data_plane=self.data_plane,
        )
        if args.settings.cluster_side == "stack":
            ClusterSide(
                f"{name}-cluster-side",
                ClusterSideArgs(settings=args.settings, cluster=args.cluster, store=args.store, identities=identities),
                pulumi.ResourceOptions(parent=self),
            )
        if args.manifest is not None:
            HostedClusterObject(
                f"{name}-hosted-cluster",
                HostedClusterObjectArgs(
                    manifest=args.manifest,
                    identity_part=identity_part(args.cluster, self.spec),
                    protect=args.settings.protect,
                ),
                # A missing secret blocks a mount, and with it the whole control plane.
                pulumi.ResourceOptions(
                    parent=self, depends_on=[*identities.values(), *data_plane.values(), *args.store.key_vault_user]
                ),
            )
        self.register_outputs({"control_plane": self.control_plane, "data_plane": self.data_plane, "spec": self.spec})

    def _control_plane_identity(self, row: catalogue_rows.ControlPlaneIdentity) -> ControlPlaneIdentityComponent:
        args = self._args
        return ControlPlaneIdentityComponent(
            control_plane_identity_name(self._name, row.field),
            ControlPlaneIdentityArgs(
                row=row, settings=args.settings, cluster=args.cluster, source=self._source(row), store=args.store
            ),
            pulumi.ResourceOptions(parent=self),
        )

    def _source(self, row: catalogue_rows.ControlPlaneIdentity) -> EntraApplicationArgs | ImportedCredentialArgs:
        settings, cluster = self._args.settings, self._args.cluster
        if cluster.identity(row).source == "managed-identity":
            return self._args.imported[row.field]
        return EntraApplicationArgs(
            display_name=f"{row.secret_stem}-{cluster.name}",
            settings=settings,
            owner=self._args.deployer,
        )

    def _data_plane_identity(self, row: catalogue_rows.DataPlaneIdentity) -> DataPlaneIdentityComponent:
        return DataPlaneIdentityComponent(
            f"{self._name}-data-plane-{row.name}",
            DataPlaneIdentityArgs(row=row, settings=self._args.settings, cluster=self._args.cluster),
            pulumi.ResourceOptions(parent=self),
        )

    def _exported(
        self, row: catalogue_rows.ControlPlaneIdentity, identity: ControlPlaneIdentityComponent
    ) -> ControlPlaneIdentityOutput[Leaf]:
        return {
            "clientID": identity.client_id,
            "credentialsSecretName": identity.secret_name,
            "objectEncoding": self._args.cluster.object_encoding,
            "secretProviderClass": row.secret_provider_class,
            "notAfter": identity.summary["notAfter"],
            "renewAfter": identity.summary["renewAfter"],
            "thumbprint": identity.summary["thumbprint"],
        }
