"""The pods with which the local cloud plays the control planes of clusters with workload identities.

A pod for each service account stands for the component of the hosted control plane: it has the token at the same path,
signed by the local kubelet with the cluster's own key. On Azure HyperShift's pods have the tokens, without probes.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Final

from identity.aks.probe_pod import probe_deployment, probe_labels, probe_pod, proof_argument
from identity.catalogue import FEDERATED_AUDIENCE
from identity.outputs import StackOutputs
from identity.settings import HostedClusterSettings, Settings
from identity.settings.proof_target import proof_target
from ops.outputs.rows import TokenProbe, token_probes

# The local kubelet's driver, whose volume has a token that it signs (`cloud/localcloud/kubelet/csi.py`).
DRIVER: Final = "hosted-cluster-tokens.localcloud"
# The local kubelet runs the probe as a process of this environment, with any image.
_IMAGE: Final = "idstack/credential-probe:local"


def deployments(settings: Settings, outputs: StackOutputs[str]) -> tuple[list[TokenProbe], list[dict[str, Any]]]:
    """The probes of a stack, and the Namespaces and Deployments that run them.

    A cluster whose signing key the stack does not know has none.
    """
    clusters = {
        cluster.name: cluster
        for cluster in settings.hosted_clusters
        if not cluster.has_credentials and cluster.signing_key_vault_secret is not None
    }
    probes = [probe for probe in token_probes(outputs) if probe.cluster in clusters]
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        for namespace in dict.fromkeys(probe.namespace for probe in probes)
    ]
    pods = [_pod(probe, settings, clusters[probe.cluster], outputs["keyVaultName"]) for probe in probes]
    return probes, [*namespaces, *map(_deployment, probes, pods)]


def _deployment(probe: TokenProbe, pod: dict[str, Any]) -> dict[str, Any]:
    labels = probe_labels(probe.deployment)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": probe.deployment, "namespace": probe.namespace, "labels": labels},
        "spec": probe_deployment(probe.deployment, pod),
    }


def _pod(probe: TokenProbe, settings: Settings, cluster: HostedClusterSettings, vault: str) -> dict[str, Any]:
    """The probe's pod, with the token at the path of the real component's."""
    token = PurePosixPath(probe.token)
    proof = proof_argument(probe.row.proof, settings.cloud, proof_target(settings, cluster))
    pod = probe_pod(settings.probe.image or _IMAGE, f"token:{token}", proof)
    [container] = pod["containers"]
    container["env"] += [
        {"name": "AZURE_AUTHORITY_HOST", "value": settings.cloud.authority_host},
        {"name": "AZURE_TENANT_ID", "value": settings.tenant_id},
        {"name": "AZURE_CLIENT_ID", "value": probe.client_id},
    ]
    container["volumeMounts"] = [{"name": "token", "mountPath": str(token.parent), "readOnly": True}]
    attributes = {
        "vaultName": vault,
        "secretName": cluster.signing_key_vault_secret,
        "issuer": cluster.issuer_url,
        "subject": probe.subject,
        "audience": FEDERATED_AUDIENCE,
        "path": token.name,
    }
    pod["volumes"] = [{"name": "token", "csi": {"driver": DRIVER, "readOnly": True, "volumeAttributes": attributes}}]
    return pod
