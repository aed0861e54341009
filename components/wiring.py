"""Gives a pod the identity of a catalogue mount: volume, mount, environment and configuration document.

Pure: it works on a pod specification as Kubernetes writes it (a mapping with camelCase keys) and knows nothing of
Pulumi. Wiring twice is wiring once, and nothing else of the pod changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from components.cloud_config import CLOUD_CONFIG_KEY
from identity.catalogue import ConfigFile, Mount

CSI_DRIVER: Final = "secrets-store.csi.k8s.io"


class WiringConflict(ValueError):
    """The pod already uses a name that the mount needs for something else."""


def credential_path(mount: Mount, secret_name: str) -> str:
    """Where the pod finds the credential: the file in the mount is named as the secret."""
    return f"{mount.path}/{secret_name}"


def wire(
    pod: Mapping[str, Any], mount: Mount, *, container: str, secret_provider_class: str, secret_name: str
) -> dict[str, Any]:
    """A copy of the pod specification with `mount` wired into the container of that name.

    Raises WiringConflict if a volume, mount path or variable of the same name is there with another meaning, and
    ValueError if the pod has no such container.
    """
    if container not in (names := [each["name"] for each in pod["containers"]]):
        raise ValueError(f"no container {container!r} in the pod: it has {', '.join(map(repr, names))}")
    volumes = [_credential_volume(mount, secret_provider_class)]
    mounts = [{"name": mount.volume, "mountPath": mount.path, "readOnly": True}]
    variables = []
    if mount.credential_env is not None:
        variables.append({"name": mount.credential_env, "value": credential_path(mount, secret_name)})
    if mount.config is not None:
        volumes.append(_config_volume(mount.config))
        mounts.append({"name": mount.config.volume, "mountPath": mount.config.directory, "readOnly": True})
        if mount.config.env is not None:
            variables.append({"name": mount.config.env, "value": mount.config.path})

    def wired(each: Mapping[str, Any]) -> Mapping[str, Any]:
        if each["name"] != container:
            return each
        return _extended(_extended(each, "volumeMounts", "mountPath", mounts), "env", "name", variables)

    return _extended({**pod, "containers": [wired(each) for each in pod["containers"]]}, "volumes", "name", volumes)


def _credential_volume(mount: Mount, secret_provider_class: str) -> dict[str, Any]:
    # support/azureutil/azureutil.go, CreateVolumeForAzureSecretStoreProviderClass
    attributes = {"secretProviderClass": secret_provider_class}
    return {"name": mount.volume, "csi": {"driver": CSI_DRIVER, "readOnly": True, "volumeAttributes": attributes}}


def _config_volume(file: ConfigFile) -> dict[str, Any]:
    source: dict[str, Any] = {"secretName": file.secret}
    if file.file != CLOUD_CONFIG_KEY:
        source["items"] = [{"key": CLOUD_CONFIG_KEY, "path": file.file}]
    return {"name": file.volume, "secret": source}


def _extended(owner: Mapping[str, Any], field: str, key: str, additions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """`owner` with the additions in its list `field`, whose entries are told apart by `key`."""
    entries = list(owner.get(field, ()))
    for addition in additions:
        existing = next((entry for entry in entries if entry[key] == addition[key]), None)
        if existing is None:
            entries.append(addition)
        elif existing != addition:
            raise WiringConflict(f"{field} already has {addition[key]!r}: {existing}; the identity needs {addition}")
    return {**owner, field: entries} if entries else dict(owner)
