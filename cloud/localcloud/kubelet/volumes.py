"""A pod's volumes: where they are on this machine, and their content.

A pod's file tree is a directory; its mount path `/mnt/certs` is `<tree>/mnt/certs`. All containers of a pod share the
tree, so two that mount different volumes at one path are refused.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from localcloud.core.state_directory import StateDirectory
from localcloud.kubelet import atomic_writer, csi
from localcloud.kubelet.atomic_writer import File, Payload
from localcloud.kubelet.azure_provider import MountedObject
from localcloud.kubelet.client import CONFIG_MAPS, SECRET_PROVIDER_CLASSES, SECRETS, ApiResource, EventRecorder
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.containers import Node
from localcloud.kubelet.csi import HOSTED_TOKENS_DRIVER, HostedClusterTokens, MountError, ServiceAccountTokens
from localcloud.kubelet.selection import field_at, is_terminating
from localcloud.kubernetes.calls import ApiError, Object

# `secretObjects` of a SecretProviderClass: Kubernetes Secrets from mounted files.
#
# Words and rules are the driver's: `controllers/secretproviderclasspodstatus_controller.go`, `pkg/util/secretutil`,
# `pkg/rotation/reconciler.go` (a changed file changes the Secret). A Secret belongs to the owners of its pods, and goes
# with the last pod that mounts the class (docs `topics/sync-as-kubernetes-secret`).

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
                    await self._recorder.record(self._pod, _FAILED, str(error))

    async def forget(self, class_name: str) -> None:
        """Delete the Secrets of a class that no other pod mounts. Raises `ApiError`."""
        if any(self._mounts(other, class_name) for other in self._cluster.pods.objects.values()):
            return
        for entry in await self._entries(class_name):
            name = str(entry.get("secretName") or "").strip()
            secret = await self._cluster.find(SECRETS, self._namespace, name)
            if name and secret is not None and _is_managed(secret):
                await self._cluster.client.delete(SECRETS, self._namespace, name, uid=secret["metadata"]["uid"])

    async def _entries(self, class_name: str) -> Sequence[Mapping[str, Any]]:
        document = await self._cluster.find(SECRET_PROVIDER_CLASSES, self._namespace, class_name)
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
        secret = await self._cluster.find(SECRETS, self._namespace, name)
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


_DEFAULT_MODE: Final = 0o644
# Volumes that are mounted by subPath only have no directory in the tree.
_ASIDE: Final = ".volumes"


@dataclass(frozen=True)
class VolumeMount:
    """One place where a volume, or a part of it, appears."""

    path: str
    volume: str
    sub_path: str


def mounts_of(pod: Object) -> list[VolumeMount]:
    """Every distinct mount of the pod's containers, outer paths first. Raises `MountError` for a clash."""
    mounts: dict[str, VolumeMount] = {}
    for container in (*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]):
        for entry in container.get("volumeMounts", []):
            mount = VolumeMount(entry["mountPath"].rstrip("/") or "/", entry["name"], entry.get("subPath", ""))
            if (other := mounts.setdefault(mount.path, mount)) != mount:
                raise MountError(
                    f'volumes "{other.volume}" and "{mount.volume}" are both mounted at {mount.path}: on a local node '
                    "the containers of a pod share one file tree; mount them at different paths"
                )
    return [mounts[path] for path in sorted(mounts)]


class Volumes:
    def __init__(self, node: Node, pod: Object, tree: Path) -> None:
        self._secrets = SyncedSecrets(pod, node.cluster, node.recorder)
        self._pod = pod
        self._tree = tree
        self._cluster = node.cluster
        self._provider = node.provider
        self._versions: dict[str, Sequence[tuple[str, str]]] = {}
        self._tokens = ServiceAccountTokens(node.cluster.client, pod)
        self._hosted_tokens = HostedClusterTokens(StateDirectory(node.state_dir))

    @property
    def rotate(self) -> bool:
        """Whether a volume comes from a vault, or has a token that expires: no watch of the cluster reports either."""
        return any("csi" in volume for volume in self._volumes)

    @property
    def have_tokens(self) -> bool:
        """Whether a volume has tokens of the pod's ServiceAccount, which expire."""
        sources = (part for volume in self._volumes for part in volume.get("projected", {}).get("sources", []))
        return any("serviceAccountToken" in part for part in sources)

    async def set_up(self) -> list[str]:
        """Update every volume; returns the names of those that changed.

        Raises MountError for one that cannot be set up now; those that were set up before keep their content.
        """
        self._tree.mkdir(mode=0o700, parents=True, exist_ok=True)
        changed: list[str] = []
        mounts = mounts_of(self._pod)
        for volume in self._volumes:
            directory = self._directory(volume["name"], mounts)
            # The driver's tmpfs mount point belongs to the pod only.
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                if await self._fill(volume, directory):
                    changed.append(volume["name"])
            except (MountError, atomic_writer.InvalidPayloadError, OSError) as error:
                raise MountError(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}') from None
        self._link(mounts)
        return changed

    async def tear_down(self) -> None:
        """Remove the file tree and its reported status."""
        shutil.rmtree(self._tree, ignore_errors=True)
        for volume in self._volumes:
            if volume["name"] in self._versions:
                await csi.forget(self._cluster.client, self._pod, volume)
                await self._secrets.forget(csi.class_of(volume))

    @property
    def _volumes(self) -> list[dict[str, Any]]:
        volumes: list[dict[str, Any]] = self._pod["spec"].get("volumes", [])
        return volumes

    def _directory(self, volume: str, mounts: Sequence[VolumeMount]) -> Path:
        whole = next((mount.path for mount in mounts if mount.volume == volume and not mount.sub_path), None)
        return self._tree / (whole.lstrip("/") if whole else f"{_ASIDE}/{volume}")

    def _link(self, mounts: Sequence[VolumeMount]) -> None:
        """Link the further mounts of a volume, and parts of volumes, to its one directory."""
        for mount in mounts:
            source = self._directory(mount.volume, mounts) / mount.sub_path
            place = self._tree / mount.path.lstrip("/")
            if place != source and not place.is_symlink():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(source)

    async def _fill(self, volume: dict[str, Any], directory: Path) -> bool:
        if "emptyDir" in volume:
            return False
        if volume.get("csi", {}).get("driver") == HOSTED_TOKENS_DRIVER:
            path, token = self._hosted_tokens.current(volume["csi"].get("volumeAttributes", {}))
            return atomic_writer.write(directory, {path: File(token.encode())})
        if "csi" in volume:
            return await self._fill_from_vault(volume, directory)
        return atomic_writer.write(directory, await self._payload(volume))

    async def _fill_from_vault(self, volume: dict[str, Any], directory: Path) -> bool:
        files = await csi.fetch(self._cluster, self._provider, self._pod, volume)
        has_changed = atomic_writer.write(directory, {file.path: file.file for file in files})
        if (versions := _versions(files)) != self._versions.get(volume["name"]):
            await csi.report(self._cluster.client, self._pod, volume, str(directory), versions)
            self._versions[volume["name"]] = versions
        await self._secrets.sync(csi.class_of(volume), files)
        return has_changed

    async def _payload(self, volume: dict[str, Any]) -> Payload:
        if (payload := await self._common(volume, _DEFAULT_MODE)) is not None:
            return payload
        if source := volume.get("projected"):
            projected: dict[str, File] = {}
            for part in source.get("sources", []):
                projected |= await self._projected(part, source.get("defaultMode", _DEFAULT_MODE))
            return projected
        kind = next((key for key in volume if key != "name"), "none")
        raise MountError(
            f"the local kubelet has no {kind} volumes; it has csi, secret, configMap, projected, downwardAPI and "
            "emptyDir"
        )

    async def _projected(self, part: dict[str, Any], mode: int) -> Payload:
        if (payload := await self._common(part, mode)) is not None:
            return payload
        if source := part.get("serviceAccountToken"):
            return {source["path"]: File((await self._tokens.current(source)).encode(), mode)}
        raise MountError(
            "the local kubelet projects secrets, configMaps, ServiceAccount tokens and the pod's fields, not "
            f"{', '.join(part)}"
        )

    async def _common(self, part: dict[str, Any], mode: int) -> Payload | None:
        """What a volume has as well as a projected one; None for another source."""
        if source := part.get("secret"):
            name = source.get("secretName", source.get("name", ""))
            return await self._object(SECRETS, name, {"defaultMode": mode, **source})
        if source := part.get("configMap"):
            return await self._object(CONFIG_MAPS, source.get("name", ""), {"defaultMode": mode, **source})
        if source := part.get("downwardAPI"):
            return self._fields(source.get("items", []), source.get("defaultMode", mode))
        return None

    def _fields(self, items: Sequence[Mapping[str, Any]], mode: int) -> Payload:
        payload: dict[str, File] = {}
        for item in items:
            if "fieldRef" not in item:
                raise MountError(f"{item['path']}: the local kubelet limits no resources, so it has fieldRef alone")
            path = item["fieldRef"]["fieldPath"]
            if (value := field_at(self._pod, path)) is None:
                raise MountError(f"field reference {path}: the pod has no such string field")
            payload[item["path"]] = File(value.encode(), item.get("mode", mode))
        return payload

    async def _object(self, resource: ApiResource, name: str, source: Mapping[str, Any]) -> Payload:
        """All keys of a Secret or ConfigMap as files, or the chosen `items` at their paths and modes."""
        document = await self._cluster.find(resource, self._pod["metadata"]["namespace"], name)
        if document is None:
            if source.get("optional"):
                return {}
            raise MountError(f'{resource.kind.lower()} "{name}" not found')
        is_secret, mode = resource is SECRETS, source["defaultMode"]
        encoded = document.get("data" if is_secret else "binaryData", {})
        data = {key: base64.b64decode(value) for key, value in encoded.items()}
        if not is_secret:
            data |= {key: text.encode() for key, text in document.get("data", {}).items()}
        if "items" not in source:
            return {key: File(content, mode) for key, content in data.items()}
        payload: dict[str, File] = {}
        for item in source["items"]:
            if item["key"] in data:
                payload[item["path"]] = File(data[item["key"]], item.get("mode", mode))
            elif not source.get("optional"):
                kind = "secret" if is_secret else "config"
                raise MountError(f"references non-existent {kind} key: {item['key']} of {name}")
        return payload


def _versions(files: Sequence[MountedObject]) -> Sequence[tuple[str, str]]:
    return sorted((file.uid, file.version) for file in files)
