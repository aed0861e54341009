"""One hosted cluster: its identities, its cluster side, and the identity part of its HostedCluster specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pulumi

from components.azure.context import ClusterContext
from components.azure.control_plane_identity import ControlPlaneIdentityComponent, ImportedCredential
from components.azure.infrastructure import create_infrastructure
from components.azure.managed_identity import DataPlaneIdentityComponent, OptionalIdentityComponent
from components.hypershift.cluster_keys import (
    cluster_signing_key,
    encryption_key_secret,
    names_encryption_key,
    signing_key_secret,
)
from components.hypershift.hosted_cluster_object import (
    HostedClusterObject,
    encryption_keys,
    hosted_cluster_spec,
    merged,
    stack_part,
)
from components.kubernetes.cluster_side import ClusterSide, ClusterSideArgs
from identity import resource_types
from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.naming import (
    cluster_side_name,
    control_plane_identity_name,
    federated_identity_name,
    infrastructure_name,
    namespace_guard_name,
)
from identity.outputs import ControlPlaneIdentityOutput, ManagedIdentityOutput

# A value in the outputs that Azure assigns (`identity/outputs.py`).
Leaf: TypeAlias = pulumi.Input[str | None]


@dataclass(frozen=True, kw_only=True)
class HostedClusterArgs:
    """Inputs of `HostedCluster`.

    `imported` has the managed identities by field; `manifest` is the HostedCluster without the stack's part, None if
    the stack does not apply one; `delivered` has by field the generation of the certificate that the last complete run
    left in the vault. `handed_over` is as in `ClusterSideArgs`. `signing_key_file_id` is the id of the signing key in
    the file that the settings name.
    """

    context: ClusterContext
    imported: Mapping[str, ImportedCredential]
    manifest: Mapping[str, Any] | None
    delivered: Mapping[str, str]
    handed_over: frozenset[str] | None
    signing_key_file_id: str | None


class HostedCluster(pulumi.ComponentResource):
    """Everything of one hosted cluster.

    Outputs (`identity/outputs.py` has their shapes): `namespace` of the HostedCluster; `control_plane`, `data_plane`
    and `managed_identities` (the optional ones, and workload identities) by field; `spec`, the identity part of the
    HostedCluster; `encryption_keys`, None without KMS; `encryption_key_secret`, the name of the Secret with the key of
    etcd that the stack makes, None without one. Nothing in them is secret.
    """

    def __init__(self, name: str, args: HostedClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(resource_types.HOSTED_CLUSTER, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        settings, cluster = args.context.settings, args.context.cluster
        infrastructure = create_infrastructure(infrastructure_name(name), settings, cluster, child)
        context = replace(args.context, infrastructure=infrastructure)
        signing_key = cluster_signing_key(name, self, context, args.signing_key_file_id)
        issuer = () if signing_key is None else signing_key.resources
        identities = {
            row.field: ControlPlaneIdentityComponent(
                control_plane_identity_name(name, row.field),
                context,
                row,
                args.imported.get(row.field),
                args.delivered.get(row.field),
                child,
            )
            for row in cluster.enabled_rows
        }
        data_plane = {
            row.field: DataPlaneIdentityComponent(
                federated_identity_name(name, row.kind, row.name), context, row, issuer, child
            )
            for row in cluster.federated_rows
        }
        principals: dict[str, pulumi.Input[str]] = {field: one.principal_id for field, one in data_plane.items()}
        principals |= {field: one.principal_id for field, one in identities.items()}
        attachers = {
            row.field: (row.component, principals[row.field]) for row in CONTROL_PLANE if row.field in principals
        }
        optional = {
            row.field: OptionalIdentityComponent(
                f"{name}-{row.name}", context, row, attachers.get(row.attached_by or ""), child
            )
            for row in cluster.optional_rows
        }
        self.namespace = cluster.namespace
        self.data_plane: dict[str, Leaf] = {field: identity.client_id for field, identity in data_plane.items()}
        self.managed_identities: dict[str, ManagedIdentityOutput[Leaf]] = {
            field: {"clientID": identity.client_id, "resourceID": identity.resource_id}
            for field, identity in optional.items()
        }
        if not cluster.has_credentials:
            # `idstack status` compares them with Azure: there is no mount that would show whether they work.
            self.managed_identities |= {
                row.field: {
                    "clientID": data_plane[row.field].client_id,
                    "resourceID": settings.identity_id(cluster.identity_names[row.field]),
                }
                for row in cluster.federated_rows
            }
        self.control_plane = {
            row.field: _exported(row, identities[row.field], cluster.identity(row).object_encoding)
            for row in cluster.enabled_rows
        }
        self.spec = hosted_cluster_spec(
            settings,
            cluster,
            vault_name=context.store.vault_name,
            control_plane={field: identity.client_id for field, identity in identities.items()},
            data_plane=self.data_plane,
        )
        self.encryption_keys = encryption_keys(cluster)
        names_key = names_encryption_key(args.manifest, cluster.encryption_key_secret)
        self.encryption_key_secret = cluster.encryption_key_secret if names_key else None
        usable = [resource for identity in identities.values() for resource in identity.usable]
        managed = [*data_plane.values(), *optional.values()]
        everything = [*usable, *managed, *context.store.key_vault_user, *context.infrastructure, *issuer]
        if settings.makes_cluster_side(cluster) or args.handed_over is not None:
            if context.connection is None:
                raise AssertionError("a stack with objects in the management cluster has a connection to it")
            cluster_side = ClusterSide(
                cluster_side_name(name),
                ClusterSideArgs(
                    context=context,
                    identities=identities,
                    connection=context.connection,
                    handed_over=args.handed_over,
                ),
                child,
            )
            # The engine deletes it before the objects in the namespace and `everything`.
            cluster_side.guard(
                namespace_guard_name(name),
                pulumi.ResourceOptions(parent=self, depends_on=[*everything, *cluster_side.shared]),
            )
        if args.manifest is not None:
            secrets = [
                *signing_key_secret(f"{name}-signing-key-secret", self, context, signing_key),
                *(encryption_key_secret(name, self, context) if names_key else ()),
            ]
            HostedClusterObject(
                f"{name}-hosted-cluster",
                merged(args.manifest, stack_part(cluster, self.spec)),
                # A missing secret blocks a mount, and with it the whole control plane. HyperShift needs the
                # infrastructure until it has deleted machines and load balancers.
                pulumi.ResourceOptions(parent=self, depends_on=[*everything, *secrets]),
                protect=settings.protect,
            )
        self.register_outputs({"control_plane": self.control_plane, "data_plane": self.data_plane, "spec": self.spec})


def _exported(
    row: ControlPlaneIdentity, identity: ControlPlaneIdentityComponent, object_encoding: str
) -> ControlPlaneIdentityOutput[Leaf]:
    return {
        "clientID": identity.client_id,
        "credentialsSecretName": identity.secret_name,
        "objectEncoding": object_encoding,
        "secretProviderClass": row.secret_provider_class,
        "notAfter": identity.summary["notAfter"],
        "renewAfter": identity.summary["renewAfter"],
        "thumbprint": identity.summary["thumbprint"],
        "generation": identity.summary["generation"],
    }
