"""The probes of hosted clusters with workload identities, in the local cloud alone.

A pod for each service account stands for the component of the hosted control plane: it has the token at the same path,
signed by the local kubelet with the cluster's own key. On Azure HyperShift's pods have the tokens, without probes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, Final

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from identity.access.probe_pod import CONTAINER, probe_deployment, probe_labels, probe_pod, proof_argument
from identity.catalogue import FEDERATED_AUDIENCE
from identity.clouds import LocalEnvironment
from identity.outputs import StackOutputs
from identity.settings import HostedClusterSettings, Settings
from identity.settings.proof_target import proof_target
from ops.outputs.token_rows import TokenProbe, token_probes
from ops.stack.errors import CommandError

# The local kubelet's driver, whose volume has a token that it signs (`localcloud/kubelet/hosted_tokens.py`).
DRIVER: Final = "hosted-cluster-tokens.localcloud"
# The label of the namespaces of a stack's probes.
_STACK_LABEL: Final = "idstack/token-probes-of"
_MANAGER: Final = "idstack"
_APPLY: Final = "application/apply-patch+yaml"
# The local kubelet runs the probe as a process of this environment, with any image.
_IMAGE: Final = "idstack/credential-probe:local"


def apply(
    environment: LocalEnvironment, stack: str, settings: Settings, outputs: StackOutputs[str]
) -> list[TokenProbe]:
    """Create, update and delete the probes of a stack as its outputs need; returns them.

    A cluster whose signing key the stack does not know has none. Raises CommandError if the API refuses.
    """
    clusters = {
        cluster.name: cluster
        for cluster in settings.hosted_clusters
        if not cluster.has_credentials and cluster.signing_key_vault_secret is not None
    }
    probes = [probe for probe in token_probes(outputs) if probe.cluster in clusters]
    with _api(environment) as api:
        _remove(api, stack, probes)
        for namespace in dict.fromkeys(probe.namespace for probe in probes):
            _apply_namespace(api, namespace, stack)
        for probe in probes:
            pod = _pod(probe, settings, clusters[probe.cluster], outputs["keyVaultName"])
            _apply_deployment(api, probe, pod)
    return probes


def remove(environment: LocalEnvironment, stack: str) -> None:
    """Delete the probes of a stack with their namespaces; raises CommandError if the API refuses."""
    with _api(environment) as api:
        _remove(api, stack, ())


@contextmanager
def _api(environment: LocalEnvironment) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(environment.kubeconfig) as api:
        try:
            yield api
        except (ApiException, HTTPError) as error:
            raise CommandError(f"the probes of workload identities: {error}") from None


def _remove(api: client.ApiClient, stack: str, probes: Collection[TokenProbe]) -> None:
    """Delete all other probes and namespaces."""
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    namespaces = {probe.namespace for probe in probes}
    deployments = {(probe.namespace, probe.deployment) for probe in probes}
    for namespace in _names(core.list_namespace(label_selector=f"{_STACK_LABEL}={stack}", _preload_content=False)):
        if namespace not in namespaces:
            core.delete_namespace(namespace)
            continue
        of_probes = f"app.kubernetes.io/name={CONTAINER}"
        listed = apps.list_namespaced_deployment(namespace, label_selector=of_probes, _preload_content=False)
        for name in _names(listed):
            if (namespace, name) not in deployments:
                apps.delete_namespaced_deployment(name, namespace)


def _names(listed: Any) -> list[str]:
    # As plain JSON: the client's models make every member optional.
    return [item["metadata"]["name"] for item in json.loads(listed.data)["items"]]


def _apply_namespace(api: client.ApiClient, name: str, stack: str) -> None:
    metadata = {"name": name, "labels": {_STACK_LABEL: stack}}
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    client.CoreV1Api(api).patch_namespace(name, document, field_manager=_MANAGER, force=True, _content_type=_APPLY)


def _apply_deployment(api: client.ApiClient, probe: TokenProbe, pod: dict[str, Any]) -> None:
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": probe.deployment,
            "namespace": probe.namespace,
            "labels": probe_labels(probe.deployment),
        },
        "spec": probe_deployment(probe.deployment, pod),
    }
    client.AppsV1Api(api).patch_namespaced_deployment(
        probe.deployment, probe.namespace, document, field_manager=_MANAGER, force=True, _content_type=_APPLY
    )


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
