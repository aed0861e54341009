"""`secretObjects` of a SecretProviderClass: Kubernetes Secrets from mounted files.

Words and rules are the driver's: `controllers/secretproviderclasspodstatus_controller.go`, `pkg/util/secretutil`,
`pkg/rotation/reconciler.go` (a changed file changes the Secret). A Secret belongs to the owners of its pods, and goes
with the last pod that mounts the class (docs `topics/sync-as-kubernetes-secret`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from localcloud.kubelet.azure_provider import MountedObject
from localcloud.kubelet.client import SECRETS
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.events import EventRecorder
from localcloud.kubelet.selection import is_terminating
from localcloud.kubernetes.calls import ApiError, Object

_MANAGED: Final = "secrets-store.csi.k8s.io/managed"
_FAILED: Final = "FailedToCreateSecret"
_TLS: Final = "kubernetes.io/tls"
_OPAQUE: Final = "Opaque"
_TYPES: Final = frozenset(
    {"kubernetes.io/basic-auth", "bootstrap.kubernetes.io/token", "kubernetes.io/dockerconfigjson", _TLS}
    | {"kubernetes.io/dockercfg", "kubernetes.io/ssh-auth", "kubernetes.io/service-account-token"}
)
_CONFLICT: Final = 409


class SyncedSecrets:
    """The Secrets of one pod's volumes."""

    def __init__(self, pod: Object, cluster: ClusterCache, recorder: EventRecorder) -> None:
        self._pod = pod
        self._cluster = cluster
        self._recorder = recorder
        self._told: set[str] = set()

    async def sync(self, class_name: str, files: Sequence[MountedObject]) -> None:
        """Create or change the Secrets of a class; a wrong entry is one event. Raises `ApiError`."""
        for entry in await self._entries(class_name):
            try:
                await self._write(class_name, entry, {file.path: file.file.data for file in files})
            except ValueError as error:
                if str(error) not in self._told:
                    self._told.add(str(error))
                    await self._recorder.warning(self._pod, _FAILED, str(error))

    async def forget(self, class_name: str) -> None:
        """Delete the Secrets of a class that no other pod mounts. Raises `ApiError`."""
        if any(self._mounts(other, class_name) for other in self._cluster.pods.objects.values()):
            return
        for entry in await self._entries(class_name):
            name = str(entry.get("secretName") or "").strip()
            secret = await self._cluster.secret(self._namespace, name)
            if name and secret is not None and _is_managed(secret):
                await self._cluster.client.delete(SECRETS, self._namespace, name, uid=secret["metadata"]["uid"])

    async def _entries(self, class_name: str) -> Sequence[Mapping[str, Any]]:
        document = await self._cluster.secret_provider_class(self._namespace, class_name)
        return ((document or {}).get("spec") or {}).get("secretObjects") or []

    async def _write(self, class_name: str, entry: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        name, kind = str(entry.get("secretName") or "").strip(), str(entry.get("type") or "").strip()
        for value, missing in ((name, "secret name"), (kind, "secret type"), (entry.get("data"), "data")):
            if not value:
                raise ValueError(
                    f"failed to validate secret object in spc {self._namespace}/{class_name}, err: {missing} is empty"
                )
        kind = kind if kind in _TYPES else _OPAQUE
        try:
            data = _data(entry["data"], kind, files)
        except ValueError as error:
            raise ValueError(
                f"failed to get data in spc {self._namespace}/{class_name} for secret {name}, err: {error}"
            ) from None
        encoded = {key: base64.b64encode(content).decode() for key, content in data.items()}
        secret = await self._cluster.secret(self._namespace, name)
        if secret is None:
            await self._create(name, kind, encoded, entry)
        elif _is_managed(secret) and (change := self._change(secret, encoded)):
            await self._cluster.client.merge(SECRETS, self._namespace, name, change)

    def _change(self, secret: Object, data: Mapping[str, str]) -> Object:
        """The changes that an existing Secret needs for the pod: data and owners."""
        owners = secret["metadata"].get("ownerReferences") or []
        known = {owner["uid"] for owner in owners}
        missing = [owner for owner in _owners(self._pod) if owner["uid"] not in known]
        change: Object = {"metadata": {"ownerReferences": [*owners, *missing]}} if missing else {}
        return {**change, "data": dict(data)} if secret.get("data") != data else change

    async def _create(self, name: str, kind: str, data: Mapping[str, str], entry: Mapping[str, Any]) -> None:
        metadata = {
            "name": name,
            "namespace": self._namespace,
            "labels": {**(entry.get("labels") or {}), _MANAGED: "true"},
            "annotations": entry.get("annotations") or {},
            "ownerReferences": _owners(self._pod),
        }
        try:
            secret = {"metadata": metadata, "type": kind, "data": data}
            await self._cluster.client.create(SECRETS, self._namespace, secret)
        except ApiError as error:
            if error.code != _CONFLICT:
                raise

    def _mounts(self, other: Object, class_name: str) -> bool:
        """Whether another remaining pod mounts the class."""
        if other["metadata"]["uid"] == self._pod["metadata"]["uid"] or is_terminating(other):
            return False
        named = (volume.get("csi", {}).get("volumeAttributes", {}) for volume in other["spec"].get("volumes", []))
        is_here = other["metadata"]["namespace"] == self._namespace
        return is_here and any(attributes.get("secretProviderClass") == class_name for attributes in named)

    @property
    def _namespace(self) -> str:
        namespace: str = self._pod["metadata"]["namespace"]
        return namespace


def _is_managed(secret: Object) -> bool:
    return (secret["metadata"].get("labels") or {}).get(_MANAGED) == "true"


def _owners(pod: Object) -> list[dict[str, str]]:
    """The owners of a pod, usually a ReplicaSet, or the pod itself."""
    metadata = pod["metadata"]
    itself = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    references = metadata.get("ownerReferences") or [itself]
    return [{key: owner[key] for key in ("apiVersion", "kind", "name", "uid")} for owner in references]


def _data(entries: Sequence[Mapping[str, Any]], kind: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The Secret's data; raises ValueError."""
    data: dict[str, bytes] = {}
    for entry in entries:
        name, key = str(entry.get("objectName") or "").strip(), str(entry.get("key") or "").strip()
        if not name:
            raise ValueError("object name in secretObjects.data")
        if not key:
            raise ValueError("key in secretObjects.data is empty")
        if name not in files:
            raise ValueError(f"file matching objectName {name} not found in the pod")
        data[key] = files[name] if kind != _TLS else _tls_part(files[name], key, name)
    return data


def _tls_part(content: bytes, key: str, name: str) -> bytes:
    """The certificates, or the private key as PKCS#1, of a PEM bundle; raises ValueError."""
    failed = f"failed to get cert data from file {name}, err:"
    try:
        if key == "tls.crt":
            return b"".join(
                certificate.public_bytes(Encoding.PEM) for certificate in x509.load_pem_x509_certificates(content)
            )
        if key == "tls.key":
            private = load_pem_private_key(content, None)
            return private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    except (TypeError, ValueError) as error:
        raise ValueError(f"{failed} {error}") from None
    raise ValueError(f"{failed} tls key is not supported. Only tls.key and tls.crt are supported")
