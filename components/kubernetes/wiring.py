"""Gives a pod the identity of a catalogue mount: volume, mount, environment and configuration document.

The functions are pure: they work on mappings as Kubernetes writes them (camelCase keys), without Pulumi. Wiring is
idempotent. It changes nothing else of the pod, and it returns a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import pulumi
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.meta import v1 as meta

from components.azure.context import ClusterContext
from components.kubernetes.cloud_config import CLOUD_CONFIG_KEY
from identity.aks.probe_pod import CONTAINER, probe_deployment, probe_labels, probe_pod, proof_argument
from identity.catalogue_rows import ConfigFile, ControlPlaneIdentity, Mount
from identity.hypershift import CLUSTER_ANNOTATION
from identity.settings import HostedClusterSettings
from identity.settings.scopes import proof_target

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


@dataclass(frozen=True, kw_only=True)
class IdentityArgs:
    """An identity of a hosted cluster."""

    context: ClusterContext
    row: ControlPlaneIdentity

    @property
    def secret_name(self) -> str:
        """The secret in the vault with the identity's credential."""
        return self.context.cluster.identity(self.row).secret_name

    def metadata(self, name: str) -> meta.ObjectMetaArgs:
        """Of an object in the control plane's namespace, as the operator writes it that has the row."""
        return operators_metadata(self.context.cluster, name, annotated=self.row.of_hypershift_operator)


@dataclass(frozen=True, kw_only=True)
class ConsumerArgs(IdentityArgs):
    """One consumer of the identity, by its mount."""

    mount: Mount

    @property
    def credential_path(self) -> str:
        """The file's absolute path in the consumer's pod."""
        return credential_path(self.mount, self.secret_name)


def operators_metadata(cluster: HostedClusterSettings, name: str, *, annotated: bool) -> meta.ObjectMetaArgs:
    """The hypershift-operator annotates what it writes with the HostedCluster, the control-plane operator nothing."""
    annotations = {CLUSTER_ANNOTATION: f"{cluster.namespace}/{cluster.name}"} if annotated else None
    return meta.ObjectMetaArgs(name=name, namespace=cluster.namespace_name, annotations=annotations)


class CredentialProbe(pulumi.ComponentResource):
    """Deployment of one probe. It is ready after sign-in and proof call."""

    def __init__(self, name: str, args: ConsumerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:CredentialProbe", name, None, opts)
        settings, cluster = args.context.settings, args.context.cluster
        row, deployment = args.row, args.row.probe_name(args.mount)
        proof = proof_argument(row.proof, settings.cloud, proof_target(settings, cluster))
        pod = wire(
            probe_pod(settings.probe.image or "", _credential_source(args), proof),
            args.mount,
            CONTAINER,
            secret_provider_class=row.secret_provider_class,
            secret_name=args.secret_name,
        )
        apps.Deployment(
            f"{name}-deployment",
            metadata=meta.ObjectMetaArgs(
                name=deployment, namespace=cluster.namespace_name, labels=probe_labels(deployment)
            ),
            spec=cast(apps.DeploymentSpecArgsDict, probe_deployment(deployment, pod)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def _credential_source(args: ConsumerArgs) -> str:
    """The probe's `--credential`: where the real consumer of this mount finds the file's path."""
    if args.mount.credential_env is not None:
        return f"env:{args.mount.credential_env}"
    if args.mount.config is not None:
        return f"cloud-config:{args.mount.config.path}"
    return f"file:{args.credential_path}"
