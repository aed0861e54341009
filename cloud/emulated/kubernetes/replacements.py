"""Which fields of which kind replace the object when they change.

Source: the table `forceNew` of pulumi/pulumi-kubernetes `provider/pkg/provider/diff.go` (v4.32), without the API
versions that Kubernetes has removed. `[*]` is any index. A field includes everything below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EVERY_KIND: Final = ("metadata.name", "metadata.namespace")

_CONTAINER: Final = (
    "args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources securityContext "
    "stdin stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
_POD: Final = (
    "affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostNetwork "
    "hostPID hostname imagePullSecrets nodeName nodeSelector overhead preemptionPolicy priority priorityClassName "
    "readinessGates restartPolicy runtimeClassName schedulerName securityContext serviceAccount serviceAccountName "
    "shareProcessNamespace subdomain terminationGracePeriodSeconds volumes"
)
_PERSISTENT_VOLUME: Final = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs "
    "hostPath iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
)


def _of(parent: str, names: str) -> tuple[str, ...]:
    """Fields of `parent`; `names` are put apart by spaces."""
    return tuple(f"{parent}.{name}" for name in names.split())


_RBAC: Final = "rbac.authorization.k8s.io/v1"
_BY_KIND: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("apps/v1", "DaemonSet"): ("spec.selector",),
    ("apps/v1", "Deployment"): ("spec.selector",),
    ("apps/v1", "StatefulSet"): _of(
        "spec", "podManagementPolicy revisionHistoryLimit selector serviceName volumeClaimTemplates"
    ),
    ("batch/v1", "Job"): _of("spec", "completions parallelism selector template"),
    (_RBAC, "ClusterRoleBinding"): ("roleRef",),
    (_RBAC, "RoleBinding"): ("roleRef",),
    ("storage.k8s.io/v1", "StorageClass"): ("parameters", "provisioner"),
    ("v1", "PersistentVolume"): _of("spec", _PERSISTENT_VOLUME),
    ("v1", "PersistentVolumeClaim"): _of("spec", "accessModes selector storageClassName volumeName"),
    ("v1", "Pod"): (
        *_of("spec", _POD),
        *_of("spec.containers[*]", _CONTAINER),
        *_of("spec.initContainers[*]", _CONTAINER),
    ),
    ("v1", "ResourceQuota"): ("spec.scopes",),
    ("v1", "Service"): ("spec.clusterIP",),
}


def replacing_fields(
    document: Mapping[str, Any], *, is_secret_mutable: bool, is_config_map_mutable: bool
) -> tuple[str, ...]:
    """The fields of this object that replace it; data of Secrets and ConfigMaps only unless it may change in place."""
    kind = (document.get("apiVersion", ""), document.get("kind", ""))
    is_immutable = document.get("immutable") is True
    fields: tuple[str, ...]
    if kind == ("v1", "Secret"):
        fields = ("type",) if is_secret_mutable and not is_immutable else ("type", "stringData", "data")
    elif kind == ("v1", "ConfigMap"):
        fields = () if is_config_map_mutable and not is_immutable else ("binaryData", "data")
    else:
        fields = _BY_KIND.get(kind, ())
    return (*EVERY_KIND, *fields)
