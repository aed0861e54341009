"""The cluster side of one hosted cluster, if the stack writes it instead of HyperShift's operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta

from components.azure.control_plane_identity import ControlPlaneIdentityComponent
from components.azure.credential_secret import CredentialStore
from components.azure.providers import ClusterConnection
from components.kubernetes.consumer_config import (
    ClusterIdentity,
    ConsumerConfig,
    NodeConfig,
    NodeConfigArgs,
    PlatformConfig,
)
from components.kubernetes.metadata_block import MetadataBlock, MetadataBlockArgs
from components.kubernetes.secret_provider_class import SecretProviderClass, SecretProviderClassArgs
from components.kubernetes.user_workload import UserWorkload, UserWorkloadArgs
from components.kubernetes.wiring import ConsumerArgs, CredentialProbe
from components.plugin.resources import NamespaceGuard
from identity import catalogue, catalogue_rows, resource_types
from identity.naming import kebab
from identity.settings import HostedClusterSettings, Settings, WorkloadSettings


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

    Each object has a component of its own, which takes the dependency on the credential's secret: with that in the
    state of the object itself, a revocation whose new gate fails ends in a state that the engine refuses (pulumi
    v3.259, `--target` with `--continue-on-error`; `tests/engine/test_revoke_now.py`).
    """

    def __init__(self, name: str, args: ClusterSideArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if args.handed_over is not None:
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(transformations=[_left_as_it_is]))
        super().__init__(resource_types.CLUSTER_SIDE, name, None, opts)
        self._name, self._args = name, args
        self._namespace = args.cluster.namespace_name
        namespace = core.Namespace(
            f"{name}-namespace",
            metadata=meta.ObjectMetaArgs(name=self._namespace),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._guarded = self.guard(f"{name}-guard", pulumi.ResourceOptions(parent=self, depends_on=[namespace]))
        inside = pulumi.ResourceOptions(parent=self, depends_on=[self._guarded])
        self.shared: list[pulumi.Resource] = [self._guarded]
        if self._is_registered(f"{name}-nodes"):
            nodes = NodeConfigArgs(settings=args.settings, cluster=args.cluster)
            self.shared.append(NodeConfig(f"{name}-nodes", nodes, inside))
        if args.settings.block_instance_metadata and self._is_registered(f"{name}-metadata"):
            MetadataBlock(f"{name}-metadata", MetadataBlockArgs(namespace=self._namespace), inside)
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

    def _is_registered(self, component: str) -> bool:
        """Whether this run registers the component: a run that hands over registers only what is in the state."""
        known = self._args.handed_over
        return known is None or any(name.startswith(f"{component}-") for name in known)

    def _identity(
        self, row: catalogue_rows.ControlPlaneIdentity, identity: ControlPlaneIdentityComponent
    ) -> list[pulumi.Resource]:
        """Register the identity's objects and probes; returns the objects that a pod needs before it mounts it."""
        args, stem = self._args, f"{self._name}-{kebab(row.field)}"
        needed: list[pulumi.Resource] = []
        if self._is_registered(f"{stem}-class"):
            secret_provider_class = SecretProviderClassArgs(
                settings=args.settings, cluster=args.cluster, row=row, store=args.store
            )
            usable = [self._guarded, *identity.usable, *args.store.key_vault_user]
            opts = pulumi.ResourceOptions(parent=self, depends_on=usable)
            needed.append(SecretProviderClass(f"{stem}-class", secret_provider_class, opts))
        for mount in row.mounts:
            consumer = ConsumerArgs(settings=args.settings, cluster=args.cluster, row=row, mount=mount)
            configuration = list(self._configuration(stem, consumer))
            needed += configuration
            if args.handed_over is None:
                CredentialProbe(
                    f"{self._name}-{row.probe_name(mount)}",
                    consumer,
                    pulumi.ResourceOptions(parent=self, depends_on=[needed[0], *configuration]),
                )
        return needed

    def _configuration(self, stem: str, consumer: ConsumerArgs) -> Iterator[pulumi.Resource]:
        """The objects in which the consumer finds the file's path, and what it reads of the platform."""
        mount, opts = consumer.mount, pulumi.ResourceOptions(parent=self, depends_on=[self._guarded])
        if mount.config is not None and self._is_registered(f"{stem}-config"):
            yield ConsumerConfig(f"{stem}-config", consumer, mount.config, opts)
        if mount.cluster_identity and self._is_registered(f"{stem}-cluster-identity"):
            yield ClusterIdentity(f"{stem}-cluster-identity", consumer, opts)
        if mount.platform is not None and self._is_registered(f"{stem}-platform"):
            yield PlatformConfig(f"{stem}-platform", consumer, mount.platform, opts)

    def _workload(
        self,
        workload: WorkloadSettings,
        rows: Sequence[catalogue_rows.ControlPlaneIdentity],
        mountable: Mapping[str, Sequence[pulumi.Resource]],
    ) -> None:
        UserWorkload(
            f"{self._name}-workload-{workload.name}",
            UserWorkloadArgs(workload=workload, cluster=self._args.cluster, rows=rows),
            pulumi.ResourceOptions(parent=self, depends_on=[*chain(*(mountable[row.field] for row in rows))]),
        )


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
