"""The cluster side of one hosted cluster, if the stack writes it instead of HyperShift's operators."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, cast

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.networking import v1 as networking
from pulumi_kubernetes.policy import v1 as policy

from components.azure.context import ClusterContext
from components.azure.control_plane_identity import ControlPlaneIdentityComponent
from components.azure.providers import ClusterConnection
from components.kubernetes.cloud_config import CLOUD_CONFIG_KEY, DOCUMENTS, node, render
from components.kubernetes.wiring import ConsumerArgs, CredentialProbe, IdentityArgs, operators_metadata, wire
from components.plugin.resources import NamespaceGuard
from identity import catalogue, resource_types
from identity.aks.probe_pod import CONTAINER_SECURITY, POD_SECURITY
from identity.catalogue_rows import ConfigFile, ControlPlaneIdentity, PlatformFiles, side_by_side
from identity.naming import kebab
from identity.settings import HostedClusterSettings, WorkloadSettings

_NAME: Final = "block-instance-metadata"
# learn.microsoft.com/azure/virtual-machines/instance-metadata-service: the same address on every machine.
_METADATA: Final = "169.254.169.254/32"
# learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16: the wire server, where a node's agent gets
# its settings, and Azure's DNS.
_WIRE_SERVER: Final = "168.63.129.16/32"
_DNS: Final = 53


class MetadataBlock(pulumi.ComponentResource):
    """Pods of the namespace reach everything but 169.254.169.254, where every caller gets the node's tokens, and
    168.63.129.16, where a node gets its settings; there only Azure's DNS is allowed.

    Pods are allowed by selector as well, because some network plugins (Cilium) match no pod by its address.
    """

    def __init__(self, name: str, namespace: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:MetadataBlock", name, None, opts)
        anywhere = networking.NetworkPolicyPeerArgs(
            ip_block=networking.IPBlockArgs(cidr="0.0.0.0/0", except_=[_METADATA, _WIRE_SERVER])
        )
        dns = networking.NetworkPolicyEgressRuleArgs(
            to=[networking.NetworkPolicyPeerArgs(ip_block=networking.IPBlockArgs(cidr=_WIRE_SERVER))],
            ports=[networking.NetworkPolicyPortArgs(protocol=protocol, port=_DNS) for protocol in ("UDP", "TCP")],
        )
        networking.NetworkPolicy(
            f"{name}-policy",
            metadata=meta.ObjectMetaArgs(name=_NAME, namespace=namespace),
            spec=networking.NetworkPolicySpecArgs(
                pod_selector=meta.LabelSelectorArgs(),
                policy_types=["Egress"],
                egress=[
                    networking.NetworkPolicyEgressRuleArgs(
                        to=[
                            anywhere,
                            networking.NetworkPolicyPeerArgs(ip_block=networking.IPBlockArgs(cidr="::/0")),
                            networking.NetworkPolicyPeerArgs(namespace_selector=meta.LabelSelectorArgs()),
                        ]
                    ),
                    dns,
                ],
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


class SecretProviderClass(pulumi.ComponentResource):
    """What the Secrets Store CSI driver fetches for a pod, and as which identity.

    As HyperShift's operators write it: no labels, no copy into a Kubernetes Secret.
    """

    def __init__(self, name: str, args: IdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:SecretProviderClass", name, None, opts)
        context, identity = args.context, args.context.cluster.identity(args.row)
        CustomResource(
            f"{name}-object",
            api_version="secrets-store.csi.x-k8s.io/v1",
            kind="SecretProviderClass",
            metadata=args.metadata(args.row.secret_provider_class),
            spec={
                "provider": "azure",
                # The provider reads strings only: a YAML boolean fails the mount.
                "parameters": {
                    "usePodIdentity": "false",
                    "useVMManagedIdentity": "true",
                    "userAssignedIdentityID": context.store.key_vault_user_client_id,
                    "keyvaultName": context.store.vault_name,
                    "tenantId": context.settings.tenant_id,
                    "objects": objects(args.secret_name, identity.object_encoding, args.row.mounts[0].file),
                },
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def objects(secret_name: str, object_encoding: str, file: str | None = None) -> str:
    """The parameter `objects`, byte for byte (`support/secretproviderclass/secretproviderclass.go:12-20`).

    Another file name than the secret's is an alias, which no class of HyperShift's has.
    """
    alias = "" if file is None else f"    objectAlias: {file}\n"
    return (
        f"\narray:\n  - |\n    objectName: {secret_name}\n{alias}"
        f"    objectEncoding: {object_encoding}\n"
        "    objectType: secret\n"
    )


# The nodes' ConfigMap and the cloud controller manager's Secret share their name.
NODE_CONFIG_MAP: Final = "azure-cloud-config"
# openshift/cluster-network-operator pkg/names/names.go
_NETWORK_OPERATOR_ANNOTATION: Final = {"network.operator.openshift.io/cluster-name": "management"}


class ConsumerConfig(pulumi.ComponentResource):
    """Secret with the document that names the credential file to one consumer."""

    def __init__(
        self, name: str, args: ConsumerArgs, file: ConfigFile, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("idstack:kubernetes:ConsumerConfig", name, None, opts)
        document = render(DOCUMENTS[file.kind](args.context.settings, args.context.cluster, args.credential_path))
        core.Secret(
            f"{name}-secret",
            metadata=args.metadata(file.secret),
            type="Opaque",
            # Not stringData: server-side apply cannot own a field that the API does not return.
            data={CLOUD_CONFIG_KEY: base64.b64encode(document.encode()).decode("ascii")},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


class PlatformConfig(pulumi.ComponentResource):
    """Secret and ConfigMap with the platform for a consumer."""

    def __init__(
        self, name: str, args: ConsumerArgs, files: PlatformFiles, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("idstack:kubernetes:PlatformConfig", name, None, opts)
        settings, cluster = args.context.settings, args.context.cluster
        facts = {
            "azure_region": cluster.location,
            "azure_resource_prefix": f"{cluster.name}-{cluster.infra_id}",
            "azure_resourcegroup": cluster.resource_group,
            "azure_subscription_id": settings.subscription_id,
            "azure_tenant_id": settings.tenant_id,
        }
        core.Secret(
            f"{name}-secret",
            # The hypershift-operator owns it, even where the stack writes the rest of the identity.
            metadata=operators_metadata(cluster, files.secret, annotated=True),
            type="Opaque",
            data={key: base64.b64encode(fact.encode()).decode("ascii") for key, fact in facts.items()},
            opts=pulumi.ResourceOptions(parent=self),
        )
        core.ConfigMap(
            f"{name}-config-map",
            metadata=meta.ObjectMetaArgs(
                name=files.config_map, namespace=cluster.namespace_name, annotations=_NETWORK_OPERATOR_ANNOTATION
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


class NodeConfig(pulumi.ComponentResource):
    """ConfigMap with the document of the cluster's nodes."""

    def __init__(self, name: str, context: ClusterContext, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:NodeConfig", name, None, opts)
        core.ConfigMap(
            f"{name}-config-map",
            metadata=meta.ObjectMetaArgs(name=NODE_CONFIG_MAP, namespace=context.cluster.namespace_name),
            data={CLOUD_CONFIG_KEY: render(node(context.settings, context.cluster))},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


class ClusterIdentity(pulumi.ComponentResource):
    """AzureClusterIdentity, which names the credential file to CAPZ.

    As the HyperShift operator writes it
    (`hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:471-525`).
    """

    def __init__(self, name: str, args: ConsumerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:ClusterIdentity", name, None, opts)
        settings, cluster = args.context.settings, args.context.cluster
        CustomResource(
            f"{name}-object",
            api_version="infrastructure.cluster.x-k8s.io/v1beta1",
            kind="AzureClusterIdentity",
            metadata=args.metadata(cluster.name),
            spec={
                "type": "UserAssignedIdentityCredential",
                "tenantID": settings.tenant_id,
                # Required by the definition, and empty with this type.
                "clientID": "",
                "clientSecret": {},
                "userAssignedIdentityCredentialsPath": args.credential_path,
                "userAssignedIdentityCredentialsCloudType": settings.cloud.capz_cloud_type,
                "allowedNamespaces": {"list": [cluster.namespace_name]},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


# The label `app.kubernetes.io/name` of all user workloads; `instance` has the name of one.
_WORKLOAD: Final = "user-workload"
# For temporary files, as the root is read-only. HyperShift's own pods have a volume of this name, too.
_TEMPORARY: Final = "tmp-dir"


class UserWorkload(pulumi.ComponentResource):
    """A workload of the user, with its mounts as HyperShift's own consumers have them.

    It is a Deployment of the user's image, and a PodDisruptionBudget if there is more than one pod of it. The mounts of
    `rows` fit into one container (`identity.mounts`).
    """

    def __init__(
        self,
        name: str,
        workload: WorkloadSettings,
        cluster: HostedClusterSettings,
        rows: Sequence[ControlPlaneIdentity],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("idstack:kubernetes:UserWorkload", name, None, opts)
        labels = {"app.kubernetes.io/name": _WORKLOAD, "app.kubernetes.io/instance": workload.name}
        metadata = meta.ObjectMetaArgs(name=workload.name, namespace=cluster.namespace_name, labels=labels)
        child = pulumi.ResourceOptions(parent=self)
        spec = {
            "replicas": workload.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(workload, cluster, rows)},
        }
        apps.Deployment(
            f"{name}-deployment", metadata=metadata, spec=cast(apps.DeploymentSpecArgsDict, spec), opts=child
        )
        if workload.replicas > 1:
            policy.PodDisruptionBudget(
                f"{name}-disruption-budget",
                metadata=metadata,
                spec=policy.PodDisruptionBudgetSpecArgs(
                    max_unavailable=1, selector=meta.LabelSelectorArgs(match_labels=labels)
                ),
                opts=child,
            )
        self.register_outputs({})


def _pod(
    workload: WorkloadSettings, cluster: HostedClusterSettings, rows: Sequence[ControlPlaneIdentity]
) -> dict[str, Any]:
    """The pod with one container, named as the workload, that has every identity."""
    container: dict[str, Any] = {
        "name": workload.name,
        "image": workload.image,
        "command": list(workload.command),
        "args": list(workload.args),
        "resources": _without_empty(workload.resources.model_dump()),
        "securityContext": dict(CONTAINER_SECURITY),
        "volumeMounts": [{"name": _TEMPORARY, "mountPath": "/tmp"}],  # noqa: S108  # a mount, not a file
    }
    spec: dict[str, Any] = {
        "securityContext": dict(POD_SECURITY),
        "serviceAccountName": workload.service_account,
        # A workload that names no account does not need the Kubernetes API.
        "automountServiceAccountToken": workload.service_account is not None,
        "nodeSelector": workload.node_selector,
        "tolerations": [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in workload.tolerations],
        "volumes": [{"name": _TEMPORARY, "emptyDir": {}}],
        "containers": [_without_empty(container)],
    }
    spec = _without_empty(spec)
    for row, mount in zip(rows, side_by_side(rows), strict=True):
        spec = wire(
            spec,
            mount,
            workload.name,
            secret_provider_class=row.secret_provider_class,
            secret_name=cluster.identity(row).secret_name,
        )
    return spec


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Remove what the user left out: an empty command would replace the image's."""
    return {key: value for key, value in values.items() if value not in (None, [], {})}


@dataclass(frozen=True, kw_only=True)
class ClusterSideArgs:
    """Inputs of `ClusterSide`. `identities` has the enabled ones, by field.

    `handed_over` has the names of the Kubernetes resources in the state if the namespace belongs to HyperShift now:
    this run is the last one with its objects in the state, and HyperShift owns what the state does not have.
    """

    context: ClusterContext
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
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(transformations=[_retain_unchanged]))
        super().__init__(resource_types.CLUSTER_SIDE, name, None, opts)
        self._name, self._args = name, args
        self._namespace = args.context.cluster.namespace_name
        namespace = core.Namespace(
            f"{name}-namespace",
            metadata=meta.ObjectMetaArgs(name=self._namespace),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._guarded = self.guard(f"{name}-guard", pulumi.ResourceOptions(parent=self, depends_on=[namespace]))
        inside = pulumi.ResourceOptions(parent=self, depends_on=[self._guarded])
        self.shared: list[pulumi.Resource] = [self._guarded]
        if self._is_registered(f"{name}-nodes"):
            self.shared.append(NodeConfig(f"{name}-nodes", args.context, inside))
        if args.context.settings.block_instance_metadata and self._is_registered(f"{name}-metadata"):
            MetadataBlock(f"{name}-metadata", self._namespace, inside)
        rows = {row.field: row for row in catalogue.CONTROL_PLANE if row.field in args.identities}
        mountable = {field: self._identity(row, args.identities[field]) for field, row in rows.items()}
        self.shared += chain(*mountable.values())
        for workload in args.context.cluster.workloads:
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

    def _identity(self, row: ControlPlaneIdentity, identity: ControlPlaneIdentityComponent) -> list[pulumi.Resource]:
        """Register the identity's objects and probes; returns the objects that a pod needs before it mounts it."""
        args, stem = self._args, f"{self._name}-{kebab(row.field)}"
        needed: list[pulumi.Resource] = []
        if self._is_registered(f"{stem}-class"):
            usable = [self._guarded, *identity.usable, *args.context.store.key_vault_user]
            opts = pulumi.ResourceOptions(parent=self, depends_on=usable)
            needed.append(SecretProviderClass(f"{stem}-class", IdentityArgs(context=args.context, row=row), opts))
        for mount in row.mounts:
            consumer = ConsumerArgs(context=args.context, row=row, mount=mount)
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
        rows: Sequence[ControlPlaneIdentity],
        mountable: Mapping[str, Sequence[pulumi.Resource]],
    ) -> None:
        UserWorkload(
            f"{self._name}-workload-{workload.name}",
            workload,
            self._args.context.cluster,
            rows,
            pulumi.ResourceOptions(parent=self, depends_on=[*chain(*(mountable[row.field] for row in rows))]),
        )


def _retain_unchanged(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
    """Options with which the engine neither changes an object nor, once the program has no such resource, deletes it.

    The engine takes the second one from the state (pulumi/pulumi v3.259.0, `pkg/resource/deploy/step.go`, DeleteStep).
    So it has to be registered in a run before the resource goes.
    """
    kept = pulumi.ResourceOptions(retain_on_delete=True, ignore_changes=["*"])
    is_object = args.type_.startswith("kubernetes:")
    return pulumi.ResourceTransformationResult(
        args.props, pulumi.ResourceOptions.merge(args.opts, kept) if is_object else args.opts
    )
