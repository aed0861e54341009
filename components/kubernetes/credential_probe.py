"""The credential probe: a pod that finds, loads and uses the credential of one mount as the real consumer does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from urllib.parse import urlencode

import pulumi
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.meta import v1 as meta

from components.kubernetes.security_context import CONTAINER_SECURITY, POD_SECURITY
from components.kubernetes.wiring import credential_path, wire
from identity.catalogue_rows import Mount, ProofCall, ProofTarget, Scope
from identity.clouds import Cloud
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings, Settings

CONTAINER: Final = "credential-probe"
_PORT: Final = 8080


@dataclass(frozen=True, kw_only=True)
class CredentialProbeArgs:
    """Inputs of `CredentialProbe`. `proof` is the command-line argument `--proof`."""

    deployment: str
    namespace: str
    image: str
    mount: Mount
    secret_provider_class: str
    secret_name: str
    proof: str


class CredentialProbe(pulumi.ComponentResource):
    """Deployment of one probe. It is ready after sign-in and proof call."""

    def __init__(self, name: str, args: CredentialProbeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:CredentialProbe", name, None, opts)
        labels = {"app.kubernetes.io/name": CONTAINER, "app.kubernetes.io/instance": args.deployment}
        pod = wire(
            probe_pod(args),
            args.mount,
            CONTAINER,
            secret_provider_class=args.secret_provider_class,
            secret_name=args.secret_name,
        )
        spec = {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        apps.Deployment(
            f"{name}-deployment",
            metadata=meta.ObjectMetaArgs(name=args.deployment, namespace=args.namespace, labels=labels),
            spec=cast(apps.DeploymentSpecArgsDict, spec),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def probe_pod(args: CredentialProbeArgs) -> dict[str, Any]:
    """The pod before it is wired: no privilege, a read-only root, health and readiness by HTTP."""
    return {
        "automountServiceAccountToken": False,
        "securityContext": dict(POD_SECURITY),
        "containers": [
            {
                "name": CONTAINER,
                "image": args.image,
                "command": ["python", "-m", "identity.credentials.probe"],
                "args": [
                    "--credential",
                    credential_source(args.mount, args.secret_name),
                    "--proof",
                    args.proof,
                    "--listen",
                    f"$(POD_IP):{_PORT}",
                ],
                "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                "ports": [{"name": "http", "containerPort": _PORT}],
                "readinessProbe": {"httpGet": {"path": "/readyz", "port": _PORT}, "periodSeconds": 10},
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": _PORT}, "periodSeconds": 20},
                "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
                "securityContext": dict(CONTAINER_SECURITY),
            }
        ],
    }


def credential_source(mount: Mount, secret_name: str) -> str:
    """The probe's `--credential`: where the real consumer of this mount finds the file's path."""
    if mount.credential_env is not None:
        return f"env:{mount.credential_env}"
    if mount.config is not None:
        return f"cloud-config:{mount.config.path}"
    return f"file:{credential_path(mount, secret_name)}"


def proof_target(settings: Settings, cluster: HostedClusterSettings) -> ProofTarget:
    """What the proof calls of one hosted cluster ask for."""
    kms, subnet = cluster.kms, parse_arm_id(cluster.subnet_id)
    target = ProofTarget(
        subscription=settings.subscription_id,
        managed=cluster.resource_group,
        vnet_group=subnet.resource_group,
        vnet=subnet.names[0],
        subnet=subnet.name,
        backup_storage=cluster.optional_resource(Scope.BACKUP_STORAGE) or "",
    )
    if kms is None:
        return target
    return replace(
        target,
        key_vault=kms.active_key.key_vault_name,
        key=kms.active_key.key_name,
        key_version=kms.active_key.key_version,
        is_managed_hsm=kms.is_managed_hsm,
    )


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
    proof: dict[str, Any] = {
        "method": call.method,
        "url": url,
        "scope": scope,
        "action": action,
    }
    if headers:
        proof["headers"] = dict(headers)
    if call.body is not None:
        proof["body"] = dict(call.body)
    return json.dumps(proof)
