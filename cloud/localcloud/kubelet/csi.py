"""The Secrets Store CSI driver's part of a mount: class, provider, status (`pkg/secrets-store/nodeserver.go`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from localcloud.kubelet.azure_provider import AzureProvider, MountedObject, ProviderError
from localcloud.kubelet.client import POD_STATUSES, ApiClient
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubernetes.calls import ApiError, Object

DRIVER: Final = "secrets-store.csi.k8s.io"
_CONFLICT: Final = 409
_NODE_LABEL: Final = "internal.secrets-store.csi.k8s.io/node-name"


class MountError(Exception):
    """A volume that cannot be set up now; the message goes into the FailedMount event."""


def class_of(volume: dict[str, Any]) -> str:
    """The name of the SecretProviderClass that a csi volume names, empty without one."""
    name: str = volume["csi"].get("volumeAttributes", {}).get("secretProviderClass", "")
    return name


async def fetch(
    cluster: ClusterCache, provider: AzureProvider, pod: Object, volume: dict[str, Any]
) -> list[MountedObject]:
    """The files of a csi volume. Raises `MountError` with the driver's or the provider's message."""
    source = volume["csi"]
    if source.get("driver") != DRIVER:
        raise _rpc(
            "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: "
            f"driver name {source.get('driver')} not found in the list of registered CSI drivers"
        )
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    class_name = class_of(volume)
    if not class_name:
        raise _rpc("secretProviderClass is not set")
    if not source.get("readOnly"):
        raise _rpc("Readonly is not true in request", code="InvalidArgument")
    document = await cluster.secret_provider_class(namespace, class_name)
    if document is None:
        raise _rpc(
            f"failed to get secretproviderclass {namespace}/{class_name}, error: "
            f'SecretProviderClass.secrets-store.csi.x-k8s.io "{class_name}" not found'
        )
    spec = document.get("spec", {})
    if not spec.get("provider"):
        raise _rpc(f"provider not set in {namespace}/{class_name}")
    if not spec.get("parameters"):
        raise _rpc(f"parameters not set in {namespace}/{class_name}")
    failed = f"failed to mount secrets store objects for pod {namespace}/{name}, err:"
    if spec["provider"] != "azure":
        raise _rpc(
            f'{failed} error connecting to provider "{spec["provider"]}": '
            f'provider not found: provider "{spec["provider"]}"'
        )
    try:
        files = await provider.mount(spec["parameters"])
    except ProviderError as error:
        raise _rpc(f"{failed} rpc error: code = Unknown desc = failed to mount objects, error: {error}") from None
    if not files:
        raise _rpc(f"{failed} missing object versions")
    return files


async def report(
    client: ApiClient, pod: Object, volume: dict[str, Any], target: str, versions: Sequence[tuple[str, str]]
) -> None:
    """Write the pod's SecretProviderClassPodStatus: which version of which object it has mounted. Raises `ApiError`."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    class_name = class_of(volume)
    status_name = f"{name}-{namespace}-{class_name}"
    status = {
        "podName": name,
        "secretProviderClassName": class_name,
        "mounted": True,
        "targetPath": target,
        "objects": [{"id": uid, "version": version} for uid, version in versions],
    }
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
    metadata = {
        "name": status_name,
        "namespace": namespace,
        "labels": {_NODE_LABEL: pod["spec"]["nodeName"]},
        "ownerReferences": [owner],
    }
    try:
        await client.create(POD_STATUSES, namespace, {"metadata": metadata, "status": status})
    except ApiError as error:
        if error.code != _CONFLICT:
            raise
        await client.merge(POD_STATUSES, namespace, status_name, {"metadata": metadata, "status": status})


async def forget(client: ApiClient, pod: Object, volume: dict[str, Any]) -> None:
    """Delete the SecretProviderClassPodStatus of a deleted pod. Raises `ApiError`."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    class_name = class_of(volume)
    await client.delete(POD_STATUSES, namespace, f"{name}-{namespace}-{class_name}")


def _rpc(text: str, *, code: str = "Unknown") -> MountError:
    return MountError(f"rpc error: code = {code} desc = {text}")
