"""Fields the API server fills in (kubernetes `pkg/apis/{core,apps}/v1/defaults.go`)."""

from __future__ import annotations

from typing import Any

_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_FILE_MODE = 0o644


def fill_in(document: dict[str, Any]) -> None:
    """Set the absent fields, in place; kinds without defaults stay unchanged."""
    match document["kind"]:
        case "Namespace":
            document["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = document["metadata"]["name"]
            document.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
            document.setdefault("status", {}).setdefault("phase", "Active")
        case "Secret":
            document.setdefault("type", "Opaque")
        case "Pod":
            _pod_spec(document.setdefault("spec", {}))
            document.setdefault("status", {}).setdefault("phase", "Pending")
        case "Deployment":
            _deployment_spec(document["spec"])
            document.setdefault("status", {})
        case "ReplicaSet":
            document["spec"].setdefault("replicas", 1)
            _pod_spec(document["spec"].setdefault("template", {}).setdefault("spec", {}))
            document.setdefault("status", {}).setdefault("replicas", 0)
        case "PersistentVolumeClaim":
            document["spec"].setdefault("volumeMode", "Filesystem")
            document.setdefault("status", {}).setdefault("phase", "Pending")
        case "RoleBinding":
            for subject in document.get("subjects", []):
                if subject["kind"] in {"User", "Group"}:
                    subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _deployment_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    _pod_spec(spec["template"].setdefault("spec", {}))


def _pod_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        _container(container)
    for volume in spec.get("volumes", []):
        for source in ("secret", "configMap", "projected", "downwardAPI"):
            if source in volume:
                volume[source].setdefault("defaultMode", _FILE_MODE)


def _container(container: dict[str, Any]) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    image = container.get("image", "")
    is_latest = image.endswith(":latest") or ":" not in image.rsplit("/", 1)[-1]
    container.setdefault("imagePullPolicy", "Always" if is_latest else "IfNotPresent")
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", []):
        if field := variable.get("valueFrom", {}).get("fieldRef"):
            field.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(name):
            for key, value in _PROBE.items():
                probe.setdefault(key, value)
            if http := probe.get("httpGet"):
                http.setdefault("scheme", "HTTP")
                http.setdefault("path", "/")
