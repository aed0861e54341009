"""The pod of a credential probe, and its proof call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode

from identity.catalogue_rows import ProofCall, ProofTarget
from identity.clouds import Cloud

# The id of nobody: no image and no node uses it.
_USER: Final = 65532

POD_SECURITY: Final = MappingProxyType[str, Any](
    {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
)
CONTAINER_SECURITY: Final = MappingProxyType[str, Any](
    {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
)


CONTAINER: Final = "credential-probe"
_PORT: Final = 8080


def probe_labels(deployment: str) -> dict[str, str]:
    """The labels of the pods of a probe's Deployment."""
    return {"app.kubernetes.io/name": CONTAINER, "app.kubernetes.io/instance": deployment}


def probe_deployment(deployment: str, pod: Mapping[str, Any]) -> dict[str, Any]:
    """The specification of a probe's Deployment with this pod."""
    labels = probe_labels(deployment)
    return {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }


def probe_pod(image: str, credential: str, proof: str) -> dict[str, Any]:
    """The pod without its volumes; `credential` and `proof` are the probe's arguments of these names."""
    return {
        "automountServiceAccountToken": False,
        "securityContext": dict(POD_SECURITY),
        "containers": [
            {
                "name": CONTAINER,
                "image": image,
                "command": ["python", "-m", "identity.credentials.probe"],
                "args": ["--credential", credential, "--proof", proof, "--listen", f"$(POD_IP):{_PORT}"],
                "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                "ports": [{"name": "http", "containerPort": _PORT}],
                "readinessProbe": {"httpGet": {"path": "/readyz", "port": _PORT}, "periodSeconds": 10},
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": _PORT}, "periodSeconds": 20},
                "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
                "securityContext": dict(CONTAINER_SECURITY),
            }
        ],
    }


def proof_argument(call: ProofCall, cloud: Cloud, target: ProofTarget) -> str:
    """The probe's `--proof`: the row's call for one hosted cluster, as JSON in a fixed key order."""
    endpoint, scope, action = cloud.arm_endpoint, cloud.arm_scope, call.action
    headers: Mapping[str, str] = {}
    if call.vault and target.is_managed_hsm:
        endpoint, scope = f"https://{target.key_vault}.{cloud.managed_hsm_suffix}", cloud.managed_hsm_scope
        # A managed HSM's own roles grant the same operations under its own type.
        action = action.replace("/vaults/", "/managedHsm/")
    elif call.vault:
        endpoint, headers = cloud.vault_request(target.key_vault)
        scope = cloud.vault_scope
    url = f"{endpoint}{call.path_of(target)}?{urlencode({'api-version': call.api_version})}"
    proof: dict[str, Any] = {"method": call.method, "url": url, "scope": scope, "action": action}
    if headers:
        proof["headers"] = dict(headers)
    if call.body is not None:
        proof["body"] = dict(call.body)
    return json.dumps(proof)
