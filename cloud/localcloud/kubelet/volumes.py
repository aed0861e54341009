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

from localcloud.core.state_directory import StateDirectory
from localcloud.kubelet import atomic_writer, csi, hosted_tokens
from localcloud.kubelet.atomic_writer import File, Payload
from localcloud.kubelet.azure_provider import MountedObject
from localcloud.kubelet.containers import Node
from localcloud.kubelet.csi import MountError
from localcloud.kubelet.selection import field_at
from localcloud.kubelet.synced_secrets import SyncedSecrets
from localcloud.kubelet.tokens import ServiceAccountTokens
from localcloud.kubernetes.calls import Object

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
    """The volumes of one pod under `tree`."""

    def __init__(self, node: Node, pod: Object, tree: Path) -> None:
        self._secrets = SyncedSecrets(pod, node.cluster, node.recorder)
        self._pod = pod
        self._tree = tree
        self._cluster = node.cluster
        self._provider = node.provider
        self._versions: dict[str, Sequence[tuple[str, str]]] = {}
        self._tokens = ServiceAccountTokens(node.cluster.client, pod)
        self._hosted_tokens = hosted_tokens.HostedClusterTokens(StateDirectory(node.state_dir))

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

        Raises:
            MountError: a volume cannot be set up now; volumes that were set up before keep their content.
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
        if volume.get("csi", {}).get("driver") == hosted_tokens.DRIVER:
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
        if source := volume.get("secret"):
            return await self._secret(source.get("secretName", ""), source)
        if source := volume.get("configMap"):
            return await self._config_map(source.get("name", ""), source)
        if source := volume.get("projected"):
            payload: dict[str, File] = {}
            for part in source.get("sources", []):
                payload |= await self._projected(part, source.get("defaultMode", _DEFAULT_MODE))
            return payload
        if source := volume.get("downwardAPI"):
            return self._fields(source.get("items", []), source.get("defaultMode", _DEFAULT_MODE))
        kind = next((key for key in volume if key != "name"), "none")
        raise MountError(
            f"the local kubelet has no {kind} volumes; it has csi, secret, configMap, projected, downwardAPI and "
            "emptyDir"
        )

    async def _projected(self, part: dict[str, Any], mode: int) -> Payload:
        if source := part.get("secret"):
            return await self._secret(source.get("name", ""), {"defaultMode": mode, **source})
        if source := part.get("configMap"):
            return await self._config_map(source.get("name", ""), {"defaultMode": mode, **source})
        if source := part.get("serviceAccountToken"):
            return {source["path"]: File((await self._tokens.current(source)).encode(), mode)}
        if source := part.get("downwardAPI"):
            return self._fields(source.get("items", []), mode)
        raise MountError(
            "the local kubelet projects secrets, configMaps, ServiceAccount tokens and the pod's fields, not "
            f"{', '.join(part)}"
        )

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

    async def _secret(self, name: str, source: Mapping[str, Any]) -> Payload:
        secret = await self._cluster.secret(self._pod["metadata"]["namespace"], name)
        if secret is None:
            return _absent(f'secret "{name}" not found', source)
        data = {key: base64.b64decode(value) for key, value in secret.get("data", {}).items()}
        return _items(data, "secret", name, source)

    async def _config_map(self, name: str, source: Mapping[str, Any]) -> Payload:
        config_map = await self._cluster.config_map(self._pod["metadata"]["namespace"], name)
        if config_map is None:
            return _absent(f'configmap "{name}" not found', source)
        data = {key: text.encode() for key, text in config_map.get("data", {}).items()}
        data |= {key: base64.b64decode(value) for key, value in config_map.get("binaryData", {}).items()}
        return _items(data, "config", name, source)


def _absent(reason: str, source: Mapping[str, Any]) -> Payload:
    if source.get("optional"):
        return {}
    raise MountError(reason)


def _items(data: Mapping[str, bytes], kind: str, name: str, source: Mapping[str, Any]) -> Payload:
    """All keys as files, or the chosen `items` at their paths and modes; `kind` is Kubernetes' word for the keys."""
    mode = source.get("defaultMode", _DEFAULT_MODE)
    if "items" not in source:
        return {key: File(content, mode) for key, content in data.items()}
    payload: dict[str, File] = {}
    for item in source["items"]:
        if item["key"] in data:
            payload[item["path"]] = File(data[item["key"]], item.get("mode", mode))
        elif not source.get("optional"):
            raise MountError(f"references non-existent {kind} key: {item['key']} of {name}")
    return payload


def _versions(files: Sequence[MountedObject]) -> Sequence[tuple[str, str]]:
    return sorted((file.uid, file.version) for file in files)
