"""Gives a pod the identity of a catalogue mount: volume, mount, environment and configuration document.

The functions are pure: they work on mappings as Kubernetes writes them (camelCase keys), without Pulumi. Wiring is
idempotent. It changes nothing else of the pod, and it returns a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from components.kubernetes.cloud_config import CLOUD_CONFIG_KEY
from identity.catalogue_rows import ConfigFile, Mount

CSI_DRIVER: Final = "secrets-store.csi.k8s.io"

_CONTAINERS: Final = ("containers", "initContainers")
_TEMPLATE: Final = ("spec", "template", "spec")
# Where each kind of workload keeps its pod specification.
_POD_SPECS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("spec",),
    "Deployment": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
}


class WiringConflictError(ValueError):
    """The pod already uses a name or a path that the mount needs for something else."""


def credential_path(mount: Mount, secret_name: str) -> str:
    """Absolute path of the credential in the pod."""
    return f"{mount.path}/{mount.file or secret_name}"


def wire(
    workload: Mapping[str, Any], mount: Mount, *containers: str, secret_provider_class: str, secret_name: str
) -> dict[str, Any]:
    """A copy of `workload` with `mount` wired into the containers of these names, init containers included.

    Args:
        workload: a pod specification, or an object of a kind that holds one (Deployment, StatefulSet, DaemonSet,
            ReplicaSet, Job, CronJob, Pod).
        mount: the catalogue's mount.
        containers: which containers get it; the others stay without.
        secret_provider_class: name of the SecretProviderClass in the pod's namespace.
        secret_name: the Key Vault secret, and so the name of the file unless the mount has another.

    Raises:
        WiringConflictError: a volume, mount path or variable of the same name exists with another value.
        ValueError: a kind without pods, or no container of that name.
    """
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

    def wired_container(container: Mapping[str, Any]) -> Mapping[str, Any]:
        if container["name"] not in containers:
            return container
        place = f"container {container['name']!r}"
        mounted = _extended(container, "volumeMounts", "mountPath", mounts, place)
        return _extended(mounted, "env", "name", variables, place)

    def wired_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
        _check_names(pod, containers)
        lists = {key: [wired_container(container) for container in pod[key]] for key in _CONTAINERS if key in pod}
        return _extended({**pod, **lists}, "volumes", "name", volumes, "the pod")

    if "kind" not in workload:
        return wired_pod(workload)
    if (kind := workload["kind"]) not in _POD_SPECS:
        raise ValueError(f"a {kind} has no pod specification; these kinds have one: {', '.join(_POD_SPECS)}")
    return _replaced(workload, _POD_SPECS[kind], wired_pod)


def _replaced(
    document: Mapping[str, Any], place: tuple[str, ...], change: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """A copy of the document with what is at `place` changed."""
    if not place:
        return change(document)
    step, *rest = place
    return {**document, step: _replaced(document[step], tuple(rest), change)}


def _check_names(pod: Mapping[str, Any], containers: Collection[str]) -> None:
    names = [container["name"] for key in _CONTAINERS for container in pod.get(key, ())]
    unknown = [name for name in containers if name not in names]
    if unknown or not containers:
        asked = ", ".join(map(repr, unknown)) or "named"
        raise ValueError(f"no container {asked} in the pod: it has {', '.join(map(repr, names))}")


def _credential_volume(mount: Mount, secret_provider_class: str) -> dict[str, Any]:
    # support/azureutil/azureutil.go, CreateVolumeForAzureSecretStoreProviderClass
    attributes = {"secretProviderClass": secret_provider_class}
    return {"name": mount.volume, "csi": {"driver": CSI_DRIVER, "readOnly": True, "volumeAttributes": attributes}}


def _config_volume(file: ConfigFile) -> dict[str, Any]:
    source: dict[str, Any] = {"secretName": file.secret}
    if file.file != CLOUD_CONFIG_KEY:
        source["items"] = [{"key": CLOUD_CONFIG_KEY, "path": file.file}]
    return {"name": file.volume, "secret": source}


def _extended(
    owner: Mapping[str, Any], field: str, key: str, additions: Iterable[Mapping[str, Any]], place: str
) -> dict[str, Any]:
    """`owner`, which is at `place`, with the additions in its list `field`.

    `key` identifies an entry; a path is the same with a slash at its end. Raises WiringConflictError.
    """
    entries = list(owner.get(field, ()))
    for addition in additions:
        existing = next((entry for entry in entries if entry[key].rstrip("/") == addition[key]), None)
        if existing is None:
            entries.append(addition)
        elif existing != addition:
            raise WiringConflictError(
                f"{field} of {place} already has {addition[key]!r}: {existing}; the identity needs {addition}"
            )
    return {**owner, field: entries} if entries else dict(owner)
