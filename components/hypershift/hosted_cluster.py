"""One hosted cluster: its identities, its cluster side, and the identity part of its HostedCluster specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pulumi

from components.azure.control_plane_identity import ControlPlaneIdentityArgs, ControlPlaneIdentityComponent
from components.azure.credential_secret import ImportedCredential
from components.azure.entra_application import EntraApplicationArgs
from components.azure.infrastructure import create_infrastructure
from components.azure.managed_identity import (
    AttacherArgs,
    DataPlaneIdentityArgs,
    DataPlaneIdentityComponent,
    OptionalIdentityArgs,
    OptionalIdentityComponent,
)
from components.hypershift.etcd_encryption import encryption_key_secret, names_encryption_key
from components.hypershift.hosted_cluster_object import HostedClusterObject, HostedClusterObjectArgs, stack_part
from components.hypershift.hosted_cluster_spec import encryption_keys, hosted_cluster_spec
from components.hypershift.service_account_key import SigningKeyArgs, cluster_signing_key, signing_key_secret
from components.kubernetes.cluster_side import ClusterSide, ClusterSideArgs
from identity import catalogue_rows, resource_types
from identity.catalogue import CONTROL_PLANE
from identity.infrastructure import component_name
from identity.naming import (
    cluster_side_name,
    control_plane_identity_name,
    federated_identity_name,
    namespace_guard_name,
)
from identity.outputs import ControlPlaneIdentityOutput, HostedClusterSpec, ManagedIdentityOutput
from identity.settings.schema.model import managed_identity_of

# A value in the outputs that Azure assigns (`identity/outputs.py`).
Leaf: TypeAlias = pulumi.Input[str | None]


@dataclass(frozen=True, kw_only=True)
class HostedClusterArgs(SigningKeyArgs):
    """Inputs of `HostedCluster`.

    `imported` has the managed identities by field; `manifest` is the HostedCluster without the stack's part, None if
    the stack does not apply one; `delivered` has by field the generation of the certificate that the last complete run
    left in the vault. `handed_over` is as in `ClusterSideArgs`.
    """

    imported: Mapping[str, ImportedCredential]
    manifest: Mapping[str, Any] | None
    delivered: Mapping[str, str]
    handed_over: frozenset[str] | None


class HostedCluster(pulumi.ComponentResource):
    """Everything of one hosted cluster.

    Outputs (`identity/outputs.py` has their shapes): `namespace` of the HostedCluster; `control_plane`, `data_plane`
    and `managed_identities` (the optional ones, and workload identities) by field; `spec`, the identity part of the
    HostedCluster; `encryption_keys`, None without KMS; `encryption_key_secret`, the name of the Secret with the key of
    etcd that the stack makes, None without one. Nothing in them is secret.
    """

    def __init__(self, name: str, args: HostedClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(resource_types.HOSTED_CLUSTER, name, None, opts)
        self._name, self._args = name, args
        self._infrastructure = create_infrastructure(
            component_name(name), args.settings, args.cluster, pulumi.ResourceOptions(parent=self)
        )
        signing_key = cluster_signing_key(name, self, args)
        issuer = () if signing_key is None else signing_key.resources
        rows = args.cluster.enabled_rows
        identities = {row.field: self._control_plane_identity(row) for row in rows}
        self.namespace = args.cluster.namespace
        data_plane = {row.field: self._data_plane_identity(row, issuer) for row in args.cluster.federated_rows}
        self.data_plane: dict[str, Leaf] = {field: identity.client_id for field, identity in data_plane.items()}
        optional = {
            row.field: self._optional_identity(row, {**data_plane, **identities}) for row in args.cluster.optional_rows
        }
        self.managed_identities: dict[str, ManagedIdentityOutput[Leaf]] = {
            field: {"clientID": identity.client_id, "resourceID": identity.resource_id}
            for field, identity in optional.items()
        }
        if not args.cluster.has_credentials:
            # `idstack status` compares them with Azure: there is no mount that would show whether they work.
            self.managed_identities |= {
                row.field: {
                    "clientID": data_plane[row.field].client_id,
                    "resourceID": managed_identity_of(args.settings, args.cluster, row),
                }
                for row in args.cluster.federated_rows
            }
        self.control_plane = {row.field: self._exported(row, identities[row.field]) for row in rows}
        self.spec: HostedClusterSpec[Leaf] = hosted_cluster_spec(
            args.settings,
            args.cluster,
            vault_name=args.store.vault_name,
            control_plane={field: identity.client_id for field, identity in identities.items()},
            data_plane=self.data_plane,
        )
        self.encryption_keys = encryption_keys(args.cluster)
        names_key = names_encryption_key(args.manifest, args.cluster.encryption_key_secret)
        self.encryption_key_secret = args.cluster.encryption_key_secret if names_key else None
        managed = [*data_plane.values(), *optional.values()]
        usable = [resource for identity in identities.values() for resource in identity.usable]
        everything = [*usable, *managed, *args.store.key_vault_user, *self._infrastructure, *issuer]
        if args.settings.makes_cluster_side(args.cluster) or args.handed_over is not None:
            self._cluster_side(identities, everything)
        if args.manifest is not None:
            secrets = [
                *signing_key_secret(f"{name}-signing-key-secret", self, args, signing_key),
                *encryption_key_secret(name, self, args, args.manifest),
            ]
            HostedClusterObject(
                f"{name}-hosted-cluster",
                HostedClusterObjectArgs(
                    manifest=args.manifest,
                    stack_part=stack_part(args.cluster, self.spec),
                    protect=args.settings.protect,
                ),
                # A missing secret blocks a mount, and with it the whole control plane. HyperShift needs the
                # infrastructure until it has deleted machines and load balancers.
                pulumi.ResourceOptions(parent=self, depends_on=[*everything, *secrets]),
            )
        self.register_outputs({"control_plane": self.control_plane, "data_plane": self.data_plane, "spec": self.spec})

    def _cluster_side(
        self, identities: Mapping[str, ControlPlaneIdentityComponent], everything: Sequence[pulumi.Resource]
    ) -> None:
        """The objects in the namespace, and the guard that the engine deletes before them and `everything`."""
        args = self._args
        if args.connection is None:
            raise AssertionError("a stack with objects in the management cluster has a connection to it")
        cluster_side = ClusterSide(
            cluster_side_name(self._name),
            ClusterSideArgs(
                settings=args.settings,
                cluster=args.cluster,
                store=args.store,
                identities=identities,
                connection=args.connection,
                handed_over=args.handed_over,
            ),
            pulumi.ResourceOptions(parent=self),
        )
        cluster_side.guard(
            namespace_guard_name(self._name),
            pulumi.ResourceOptions(parent=self, depends_on=[*everything, *cluster_side.shared]),
        )

    def _control_plane_identity(self, row: catalogue_rows.ControlPlaneIdentity) -> ControlPlaneIdentityComponent:
        args = self._args
        return ControlPlaneIdentityComponent(
            control_plane_identity_name(self._name, row.field),
            ControlPlaneIdentityArgs(
                row=row,
                settings=args.settings,
                cluster=args.cluster,
                source=self._source(row),
                store=args.store,
                stack_owner=args.stack_owner,
                infrastructure=self._infrastructure,
            ),
            pulumi.ResourceOptions(parent=self),
        )

    def _source(self, row: catalogue_rows.ControlPlaneIdentity) -> EntraApplicationArgs | ImportedCredential:
        settings, cluster = self._args.settings, self._args.cluster
        if cluster.identity(row).source == "managed-identity":
            return self._args.imported[row.field]
        return EntraApplicationArgs(
            display_name=f"{row.secret_stem}-{cluster.name}",
            settings=settings,
            owner=self._args.deployer.object_id,
            stack_owner=self._args.stack_owner,
            vault_id=self._args.store.vault_id,
            secret_name=cluster.identity(row).secret_name,
            object_encoding=cluster.identity(row).object_encoding,
            delivered=self._args.delivered.get(row.field),
        )

    def _data_plane_identity(
        self, row: catalogue_rows.DataPlaneIdentity, issuer: Sequence[pulumi.Resource]
    ) -> DataPlaneIdentityComponent:
        return DataPlaneIdentityComponent(
            federated_identity_name(self._name, row.kind, row.name),
            DataPlaneIdentityArgs(
                row=row,
                settings=self._args.settings,
                cluster=self._args.cluster,
                stack_owner=self._args.stack_owner,
                issuer=issuer,
                infrastructure=self._infrastructure,
            ),
            pulumi.ResourceOptions(parent=self),
        )

    def _optional_identity(
        self,
        row: catalogue_rows.OptionalManagedIdentity,
        identities: Mapping[str, ControlPlaneIdentityComponent | DataPlaneIdentityComponent],
    ) -> OptionalIdentityComponent:
        attachers = (
            AttacherArgs(component=other.component, principal_id=identities[other.field].principal_id)
            for other in CONTROL_PLANE
            if other.field == row.attached_by
        )
        return OptionalIdentityComponent(
            f"{self._name}-{row.name}",
            OptionalIdentityArgs(
                row=row,
                settings=self._args.settings,
                cluster=self._args.cluster,
                attacher=next(attachers, None),
                stack_owner=self._args.stack_owner,
                infrastructure=self._infrastructure,
            ),
            pulumi.ResourceOptions(parent=self),
        )

    def _exported(
        self, row: catalogue_rows.ControlPlaneIdentity, identity: ControlPlaneIdentityComponent
    ) -> ControlPlaneIdentityOutput[Leaf]:
        return {
            "clientID": identity.client_id,
            "credentialsSecretName": identity.secret_name,
            "objectEncoding": self._args.cluster.identity(row).object_encoding,
            "secretProviderClass": row.secret_provider_class,
            "notAfter": identity.summary["notAfter"],
            "renewAfter": identity.summary["renewAfter"],
            "thumbprint": identity.summary["thumbprint"],
            "generation": identity.summary["generation"],
        }
