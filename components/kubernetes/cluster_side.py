"""The cluster side of one hosted cluster, if the stack writes it instead of HyperShift's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta

from components.azure.control_plane_identity import ControlPlaneIdentityComponent
from components.azure.credential_store import CredentialStore
from components.azure.providers import ClusterConnection
from components.kubernetes.cloud_config import CLOUD_CONFIG_KEY, DOCUMENTS, Platform, node, render
from components.kubernetes.credential_probe import credential_probe
from components.kubernetes.namespace_objects import (
    azure_cluster_identity,
    block_instance_metadata,
    opaque_secret,
    secret_objects,
    secret_provider_class,
)
from components.kubernetes.user_workload import MountedIdentity, UserWorkload, UserWorkloadArgs
from components.kubernetes.wiring import credential_path
from components.plugin.resources import NamespaceGuard
from identity import catalogue, catalogue_rows, resource_types
from identity.access.probe_pod import proof_argument
from identity.hypershift import CLUSTER_ANNOTATION
from identity.mounts import side_by_side
from identity.naming import kebab
from identity.settings import HostedClusterSettings, Settings, WorkloadSettings
from identity.settings.proof_target import proof_target

# The nodes' ConfigMap and the cloud controller manager's Secret share their name.
_NODE_CONFIG_MAP: Final = "azure-cloud-config"
_METADATA_POLICY: Final = "block-instance-metadata"
# openshift/cluster-network-operator pkg/names/names.go
_NETWORK_OPERATOR_ANNOTATION: Final = {"network.operator.openshift.io/cluster-name": "management"}


@dataclass(frozen=True, kw_only=True)
class ClusterSideArgs:
    """Inputs of `ClusterSide`. `identities` has the enabled ones, by field.

    `handed_over` has the names of the Kubernetes resources in the state if the namespace belongs to HyperShift now:
    this run is the last one with its objects in the state, and HyperShift owns what the state does not have.
    """

    settings: Settings
    cluster: HostedClusterSettings
    store: CredentialStore
    identities: Mapping[str, ControlPlaneIdentityComponent]
    connection: ClusterConnection
    handed_over: frozenset[str] | None


class ClusterSide(pulumi.ComponentResource):
    """Namespace, SecretProviderClasses, configuration documents, a credential probe for each mount, user workloads.

    The namespace's guard comes before everything in it, as a run may end early. Pods that mount a credential come after
    its secret, the key-vault-user's role and the identity's own roles. Objects that are handed over stay unchanged in
    the cluster, also when the next run takes them out of the state; the stack's own probes and workloads are deleted.
    `shared` has the objects under names that HyperShift uses as well.
    """

    def __init__(self, name: str, args: ClusterSideArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if args.handed_over is not None:
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(transformations=[_left_as_it_is]))
        super().__init__(resource_types.CLUSTER_SIDE, name, None, opts)
        self._name, self._args = name, args
        self._namespace = args.cluster.namespace_name
        self._platform = Platform.of(args.settings, args.cluster)
        namespace = core.Namespace(
            f"{name}-namespace",
            metadata=meta.ObjectMetaArgs(name=self._namespace),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._guarded = self.guard(f"{name}-guard", pulumi.ResourceOptions(parent=self, depends_on=[namespace]))
        self._inside = pulumi.ResourceOptions(parent=self, depends_on=[self._guarded])
        self.shared: list[pulumi.Resource] = [self._guarded]
        if self._is_registered(f"{name}-nodes"):
            document = render(node(self._platform))
            self.shared.append(
                core.ConfigMap(
                    f"{name}-nodes-config-map",
                    metadata=self._metadata(_NODE_CONFIG_MAP),
                    data={CLOUD_CONFIG_KEY: document},
                    opts=self._inside,
                )
            )
        if args.settings.block_instance_metadata and self._is_registered(f"{name}-metadata"):
            block_instance_metadata(f"{name}-metadata-policy", self._metadata(_METADATA_POLICY), self._inside)
        rows = {row.field: row for row in catalogue.CONTROL_PLANE if row.field in args.identities}
        mountable = {field: self._identity(row, args.identities[field]) for field, row in rows.items()}
        self.shared += chain(*mountable.values())
        for workload in args.cluster.workloads:
            self._workload(workload, [rows[field] for field in workload.identities], mountable)
        self.register_outputs({})

    def guard(self, name: str, opts: pulumi.ResourceOptions) -> NamespaceGuard:
        """A guard of the namespace: what it depends on is not deleted while HyperShift has a control plane there."""
        return NamespaceGuard(
            name,
            clusterId=self._args.connection.cluster_id,
            kubeconfig=self._args.connection.kubeconfig,
            context=self._args.connection.context,
            namespace=self._namespace,
            handedOver=self._args.handed_over is not None,
            opts=opts,
        )

    def _metadata(self, name: str, annotations: Mapping[str, str] | None = None) -> meta.ObjectMetaArgs:
        return meta.ObjectMetaArgs(name=name, namespace=self._namespace, annotations=annotations)

    def _is_registered(self, stem: str) -> bool:
        """Whether this run registers these objects: a run that hands over registers only what is in the state."""
        known = self._args.handed_over
        return known is None or any(name.startswith(f"{stem}-") for name in known)

    def _identity(
        self, row: catalogue_rows.ControlPlaneIdentity, identity: ControlPlaneIdentityComponent
    ) -> list[pulumi.Resource]:
        """Register the identity's objects and probes; returns the objects that a pod needs before it mounts it."""
        args, stem = self._args, f"{self._name}-{kebab(row.field)}"
        annotations = {CLUSTER_ANNOTATION: f"{args.cluster.namespace}/{args.cluster.name}"}
        own = annotations if row.of_hypershift_operator else None
        needed: list[pulumi.Resource] = []
        if self._is_registered(f"{stem}-class"):
            usable = [self._guarded, *identity.usable, *args.store.key_vault_user]
            needed.append(
                secret_provider_class(
                    f"{stem}-class-object",
                    self._metadata(row.secret_provider_class, own),
                    secret_objects(
                        identity.secret_name, args.cluster.identity(row).object_encoding, row.mounts[0].file
                    ),
                    vault_name=args.store.vault_name,
                    tenant_id=args.settings.tenant_id,
                    client_id=args.store.key_vault_user_client_id,
                    opts=pulumi.ResourceOptions(parent=self, depends_on=usable),
                )
            )
        proof = proof_argument(row.proof, args.settings.cloud, proof_target(args.settings, args.cluster))
        for mount in row.mounts:
            configuration = [
                *self._configuration(stem, mount, identity.secret_name, own),
                *self._platform_files(f"{stem}-platform", mount, annotations),
            ]
            needed += configuration
            if args.handed_over is not None:
                continue
            credential_probe(
                f"{self._name}-{row.probe_name(mount)}-deployment",
                args.settings.probe.image or "",
                mount,
                deployment=row.probe_name(mount),
                namespace=self._namespace,
                secret_provider_class=row.secret_provider_class,
                secret_name=identity.secret_name,
                proof=proof,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[needed[0], *configuration]),
            )
        return needed

    def _platform_files(
        self, stem: str, mount: catalogue_rows.Mount, annotations: Mapping[str, str]
    ) -> list[pulumi.Resource]:
        """What the mount's consumer reads of the platform; HyperShift's operator always annotates it."""
        files, platform = mount.platform, self._platform
        if files is None or not self._is_registered(stem):
            return []
        facts = {
            "azure_region": platform.location,
            "azure_resource_prefix": f"{self._args.cluster.name}-{platform.infra_id}",
            "azure_resourcegroup": platform.resource_group,
            "azure_subscription_id": platform.subscription_id,
            "azure_tenant_id": platform.tenant_id,
        }
        config_map = core.ConfigMap(
            f"{stem}-config-map",
            metadata=self._metadata(files.config_map, _NETWORK_OPERATOR_ANNOTATION),
            opts=self._inside,
        )
        return [
            opaque_secret(f"{stem}-secret", self._metadata(files.secret, annotations), facts, self._inside),
            config_map,
        ]

    def _workload(
        self,
        workload: WorkloadSettings,
        rows: Sequence[catalogue_rows.ControlPlaneIdentity],
        mountable: Mapping[str, Sequence[pulumi.Resource]],
    ) -> None:
        args = self._args
        UserWorkload(
            f"{self._name}-workload-{workload.name}",
            UserWorkloadArgs(
                workload=workload,
                namespace=self._namespace,
                identities=[
                    MountedIdentity(
                        mount=mount,
                        secret_provider_class=row.secret_provider_class,
                        secret_name=args.identities[row.field].secret_name,
                    )
                    for row, mount in zip(rows, side_by_side(rows), strict=True)
                ],
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[*chain(*(mountable[row.field] for row in rows))]),
        )

    def _configuration(
        self, stem: str, mount: catalogue_rows.Mount, secret_name: str, annotations: Mapping[str, str] | None
    ) -> list[pulumi.Resource]:
        """The objects in which the mount's consumer finds the file's path."""
        path = credential_path(mount, secret_name)
        if mount.config is not None and self._is_registered(f"{stem}-config"):
            document = render(DOCUMENTS[mount.config.kind](self._platform, path))
            metadata = self._metadata(mount.config.secret, annotations)
            return [opaque_secret(f"{stem}-config-secret", metadata, {CLOUD_CONFIG_KEY: document}, self._inside)]
        if mount.cluster_identity and self._is_registered(f"{stem}-cluster-identity"):
            settings = self._args.settings
            cluster_identity = azure_cluster_identity(
                f"{stem}-cluster-identity-object",
                self._metadata(self._args.cluster.name, annotations),
                path,
                namespace=self._namespace,
                tenant_id=settings.tenant_id,
                cloud_type=settings.cloud.capz_cloud_type,
                opts=self._inside,
            )
            return [cluster_identity]
        return []


def _left_as_it_is(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
    """Options with which the engine neither changes an object nor, once the program has no such resource, deletes it.

    The engine takes the second one from the state (pulumi/pulumi v3.259.0, `pkg/resource/deploy/step.go`, DeleteStep).
    So it has to be registered in a run before the resource goes.
    """
    kept = pulumi.ResourceOptions(retain_on_delete=True, ignore_changes=["*"])
    is_object = args.type_.startswith("kubernetes:")
    return pulumi.ResourceTransformationResult(
        args.props, pulumi.ResourceOptions.merge(args.opts, kept) if is_object else args.opts
    )
