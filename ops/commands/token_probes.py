"""The probes of hosted clusters with workload identities, on the local cloud alone.

There the product plays the hosted control plane: a pod for each service account has its token where the real component
has it, signed by the local kubelet with the cluster's own key. On Azure HyperShift's pods have the tokens, and nothing
of this is made.
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

# Of the local kubelet: the volume has a token that it signs (`localcloud/kubelet/hosted_tokens.py`).
DRIVER: Final = "hosted-cluster-tokens.localcloud"
# The namespaces of a stack's probes.
_STACK_LABEL: Final = "idstack/token-probes-of"
_MANAGER: Final = "idstack"
_APPLY: Final = "application/apply-patch+yaml"
# The local kubelet runs the probe as a process of this environment, whatever the image.
_IMAGE: Final = "idstack/credential-probe:local"


def apply(
    environment: LocalEnvironment, stack: str, settings: Settings, outputs: StackOutputs[str]
) -> list[TokenProbe]:
    """Make the probes of a stack what its outputs say, and return them.

    A cluster whose signing key the stack does not know has none. Raises CommandError if the API refuses.
    """
    clusters = {
        each.name: each
        for each in settings.hosted_clusters
        if not each.has_credentials and each.signing_key_vault_secret is not None
    }
    wanted = [each for each in token_probes(outputs) if each.cluster in clusters]
    with _api(environment) as api:
        _remove(api, stack, wanted)
        for namespace in dict.fromkeys(each.namespace for each in wanted):
            _apply_namespace(api, namespace, stack)
        for each in wanted:
            pod = _pod(each, settings, clusters[each.cluster], outputs["keyVaultName"])
            _apply_deployment(api, each, pod)
    return wanted


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


def _remove(api: client.ApiClient, stack: str, wanted: Collection[TokenProbe]) -> None:
    """Delete what is not wanted; a namespace takes its probes with it."""
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    kept, deployments = {each.namespace for each in wanted}, {(each.namespace, each.deployment) for each in wanted}
    for namespace in _names(core.list_namespace(label_selector=f"{_STACK_LABEL}={stack}", _preload_content=False)):
        if namespace not in kept:
            core.delete_namespace(namespace)
            continue
        of_probes = f"app.kubernetes.io/name={CONTAINER}"
        listed = apps.list_namespaced_deployment(namespace, label_selector=of_probes, _preload_content=False)
        for name in _names(listed):
            if (namespace, name) not in deployments:
                apps.delete_namespaced_deployment(name, namespace)


def _names(listed: Any) -> list[str]:
    # As plain JSON: the client's models make every member optional.
    return [each["metadata"]["name"] for each in json.loads(listed.data)["items"]]


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
    """The probe's pod with the token where the pod of the real component has it."""
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
