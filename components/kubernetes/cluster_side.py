"""The cluster side of one hosted cluster, if the stack writes it instead of HyperShift's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta

from components.azure.control_plane_identity import ControlPlaneIdentityComponent
from components.azure.credential_store import CredentialStore
from components.kubernetes.cloud_config import Platform
from components.kubernetes.consumer_config import (
    ClusterIdentity,
    ClusterIdentityArgs,
    ConsumerConfig,
    ConsumerConfigArgs,
    NodeConfig,
    NodeConfigArgs,
)
from components.kubernetes.credential_probe import CredentialProbe, CredentialProbeArgs, proof_argument, proof_target
from components.kubernetes.metadata_block import MetadataBlock, MetadataBlockArgs
from components.kubernetes.secret_provider_class import SecretProviderClass, SecretProviderClassArgs
from components.kubernetes.user_workload import MountedIdentity, UserWorkload, UserWorkloadArgs
from components.kubernetes.wiring import credential_path
from identity import catalogue, catalogue_rows
from identity.mounts import side_by_side
from identity.naming import kebab
from identity.settings import HostedClusterSettings, Settings, WorkloadSettings


@dataclass(frozen=True, kw_only=True)
class ClusterSideArgs:
    """Inputs of `ClusterSide`. `identities` has the enabled ones, by field.

    With `handed_over` the namespace is HyperShift's now: this run is the last one that has its objects in the state.
    """

    settings: Settings
    cluster: HostedClusterSettings
    store: CredentialStore
    identities: Mapping[str, ControlPlaneIdentityComponent]
    handed_over: bool


class ClusterSide(pulumi.ComponentResource):
    """Namespace, SecretProviderClasses, configuration documents, a credential probe for each mount, user workloads.

    Whatever mounts a credential comes after its secret, the key-vault-user's role and the identity's own roles.
    What is handed over stays as it is in the cluster, also when the next run takes it out of the state; probes and
    workloads are the stack's own, and go. `shared` has the objects under names that HyperShift uses as well.
    No outputs.
    """

    def __init__(self, name: str, args: ClusterSideArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if args.handed_over:
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(transformations=[_left_as_it_is]))
        super().__init__("idstack:kubernetes:ClusterSide", name, None, opts)
        self._name, self._args = name, args
        self._namespace = args.cluster.namespace_name
        self._platform = Platform.of(args.settings, args.cluster)
        namespace = core.Namespace(
            f"{name}-namespace",
            metadata=meta.ObjectMetaArgs(name=self._namespace),
            opts=pulumi.ResourceOptions(parent=self),
        )
        nodes = NodeConfig(
            f"{name}-nodes",
            NodeConfigArgs(platform=self._platform, namespace=self._namespace),
            pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
        )
        if args.settings.block_instance_metadata:
            block = MetadataBlockArgs(namespace=self._namespace)
            MetadataBlock(f"{name}-metadata", block, pulumi.ResourceOptions(parent=self, depends_on=[namespace]))
        rows = {row.field: row for row in catalogue.CONTROL_PLANE if row.field in args.identities}
        mountable = {field: self._identity(row, args.identities[field], namespace) for field, row in rows.items()}
        self.shared: list[pulumi.Resource] = [namespace, nodes, *(each for own in mountable.values() for each in own)]
        for workload in args.cluster.workloads:
            self._workload(workload, [rows[field] for field in workload.identities], mountable)
        self.register_outputs({})

    def _identity(
        self,
        row: catalogue_rows.ControlPlaneIdentity,
        identity: ControlPlaneIdentityComponent,
        namespace: core.Namespace,
    ) -> list[pulumi.Resource]:
        """The identity's objects and probes; returns the objects that must be there before a pod mounts it."""
        args, stem = self._args, f"{self._name}-{kebab(row.field)}"
        secret_provider_class = SecretProviderClass(
            f"{stem}-class",
            SecretProviderClassArgs(
                class_name=row.secret_provider_class,
                namespace=self._namespace,
                secret_name=identity.secret_name,
                object_encoding=args.cluster.identity(row).object_encoding,
                vault_name=args.store.vault_name,
                tenant_id=args.settings.tenant_id,
                key_vault_user_client_id=args.store.key_vault_user_client_id,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=[namespace, *identity.usable, *args.store.key_vault_user]),
        )
        proof = proof_argument(row.proof, args.settings.cloud, proof_target(args.settings, args.cluster))
        needed: list[pulumi.Resource] = [secret_provider_class]
        for mount in row.mounts:
            configuration = self._configuration(stem, mount, identity.secret_name, namespace)
            needed += configuration
            if args.handed_over:
                continue
            CredentialProbe(
                f"{self._name}-{row.probe_name(mount)}",
                CredentialProbeArgs(
                    deployment=row.probe_name(mount),
                    namespace=self._namespace,
                    image=args.settings.probe.image or "",
                    mount=mount,
                    secret_provider_class=row.secret_provider_class,
                    secret_name=identity.secret_name,
                    proof=proof,
                ),
                pulumi.ResourceOptions(parent=self, depends_on=[secret_provider_class, *configuration]),
            )
        return needed

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
            pulumi.ResourceOptions(parent=self, depends_on=[each for row in rows for each in mountable[row.field]]),
        )

    def _configuration(
        self, stem: str, mount: catalogue_rows.Mount, secret_name: str, namespace: core.Namespace
    ) -> list[pulumi.Resource]:
        """The objects in which the mount's consumer finds the file's path."""
        args, opts = self._args, pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        path = credential_path(mount, secret_name)
        if mount.config is not None:
            config = ConsumerConfigArgs(
                platform=self._platform, namespace=self._namespace, file=mount.config, credential_path=path
            )
            return [ConsumerConfig(f"{stem}-config", config, opts)]
        if mount.cluster_identity:
            identity = ClusterIdentityArgs(
                cluster=args.cluster.name,
                namespace=self._namespace,
                tenant_id=args.settings.tenant_id,
                credential_path=path,
                cloud_type=args.settings.cloud.capz_cloud_type,
            )
            return [ClusterIdentity(f"{stem}-cluster-identity", identity, opts)]
        return []


def _left_as_it_is(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
    """Options with which the engine neither changes an object nor, once the program has no such resource, deletes it.

    The engine takes the second one from the state (pulumi/pulumi v3.259.0, `pkg/resource/deploy/step.go`, DeleteStep).
    So it has to be registered in a run before the resource goes.
    """
    kept = pulumi.ResourceOptions(retain_on_delete=True, ignore_changes=["*"])
    is_object = isinstance(args.resource, pulumi.CustomResource)
    return pulumi.ResourceTransformationResult(
        args.props, pulumi.ResourceOptions.merge(args.opts, kept) if is_object else args.opts
    )
