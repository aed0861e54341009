"""The probes of hosted clusters with workload identities, in the local cloud alone.

A pod for each service account stands for the component of the hosted control plane: it has the token at the same path,
signed by the local kubelet with the cluster's own key. On Azure HyperShift's pods have the tokens, without probes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlencode

from identity.aks.api_server import ApiServer, api_server_of
from identity.aks.probe_pod import CONTAINER, probe_deployment, probe_labels, probe_pod, proof_argument
from identity.azure.errors import AccessError
from identity.catalogue import FEDERATED_AUDIENCE
from identity.clouds import LocalEnvironment
from identity.outputs import StackOutputs
from identity.settings import HostedClusterSettings, Settings
from identity.settings.proof_target import proof_target
from ops.outputs.token_rows import TokenProbe, token_probes
from ops.stack.errors import CommandError

# The local kubelet's driver, whose volume has a token that it signs (`cloud/localcloud/kubelet/hosted_tokens.py`).
DRIVER: Final = "hosted-cluster-tokens.localcloud"
# The label of the namespaces of a stack's probes.
_STACK_LABEL: Final = "idstack/token-probes-of"
_MANAGER: Final = "idstack"
_APPLY: Final = "application/apply-patch+yaml"
_NAMESPACES: Final = "/api/v1/namespaces"
_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/{}/deployments"
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
def _api(environment: LocalEnvironment) -> Iterator[ApiServer]:
    try:
        with api_server_of(Path(environment.kubeconfig)) as api:
            yield api
    except AccessError as error:
        raise CommandError(f"the probes of workload identities: {error}") from None


def _remove(api: ApiServer, stack: str, probes: Collection[TokenProbe]) -> None:
    """Delete all other probes and namespaces."""
    namespaces = {probe.namespace for probe in probes}
    deployments = {(probe.namespace, probe.deployment) for probe in probes}
    for namespace in _names(api, _NAMESPACES, f"{_STACK_LABEL}={stack}"):
        if namespace not in namespaces:
            _answer(api, "DELETE", f"{_NAMESPACES}/{namespace}")
            continue
        collection = _DEPLOYMENTS.format(namespace)
        for name in _names(api, collection, f"app.kubernetes.io/name={CONTAINER}"):
            if (namespace, name) not in deployments:
                _answer(api, "DELETE", f"{collection}/{name}")


def _names(api: ApiServer, collection: str, labels: str) -> list[str]:
    listed = _answer(api, "GET", f"{collection}?{urlencode({'labelSelector': labels})}")
    return [item["metadata"]["name"] for item in listed["items"]]


def _apply(api: ApiServer, path: str, document: Mapping[str, Any]) -> None:
    """Create or update an object by server-side apply; raises AccessError."""
    _answer(api, "PATCH", f"{path}?fieldManager={_MANAGER}&force=true", document, _APPLY)


def _answer(
    api: ApiServer, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str | None = None
) -> dict[str, Any]:
    """The API's answer to `ApiServer.request`; raises AccessError for a refusal."""
    answer = api.request(method, path, body, kind)
    if answer.is_error:
        raise AccessError(f"{method} {path} at {api.server} answers {answer.status_code}: {answer.text.strip()}")
    document: dict[str, Any] = answer.json()
    return document


def _apply_namespace(api: ApiServer, name: str, stack: str) -> None:
    metadata = {"name": name, "labels": {_STACK_LABEL: stack}}
    _apply(api, f"{_NAMESPACES}/{name}", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def _apply_deployment(api: ApiServer, probe: TokenProbe, pod: dict[str, Any]) -> None:
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
    _apply(api, f"{_DEPLOYMENTS.format(probe.namespace)}/{probe.deployment}", document)


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
