"""A workload of the user: a Deployment that mounts identities as HyperShift's own consumers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import pulumi
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.policy import v1 as policy

from components.kubernetes.wiring import wire
from identity.aks.probe_pod import CONTAINER_SECURITY, POD_SECURITY
from identity.catalogue_rows import ControlPlaneIdentity, side_by_side
from identity.settings import HostedClusterSettings, WorkloadSettings

# The label `app.kubernetes.io/name` of all user workloads; `instance` has the name of one.
_NAME: Final = "user-workload"
# For temporary files, as the root is read-only. HyperShift's own pods have a volume of this name, too.
_TEMPORARY: Final = "tmp-dir"


@dataclass(frozen=True, kw_only=True)
class UserWorkloadArgs:
    """Inputs of `UserWorkload`. The mounts of `rows` fit into one container (`identity.mounts`)."""

    workload: WorkloadSettings
    cluster: HostedClusterSettings
    rows: Sequence[ControlPlaneIdentity]


class UserWorkload(pulumi.ComponentResource):
    """Deployment of the user's image, and a PodDisruptionBudget if there is more than one pod of it."""

    def __init__(self, name: str, args: UserWorkloadArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:UserWorkload", name, None, opts)
        workload = args.workload
        labels = {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/instance": workload.name}
        metadata = meta.ObjectMetaArgs(name=workload.name, namespace=args.cluster.namespace_name, labels=labels)
        child = pulumi.ResourceOptions(parent=self)
        spec = {
            "replicas": workload.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(args)},
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


def _pod(args: UserWorkloadArgs) -> dict[str, Any]:
    """The pod with one container, named as the workload, that has every identity."""
    workload = args.workload
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
    for row, mount in zip(args.rows, side_by_side(args.rows), strict=True):
        spec = wire(
            spec,
            mount,
            workload.name,
            secret_provider_class=row.secret_provider_class,
            secret_name=args.cluster.identity(row).secret_name,
        )
    return spec


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Remove what the user left out: an empty command would replace the image's."""
    return {key: value for key, value in values.items() if value not in (None, [], {})}
