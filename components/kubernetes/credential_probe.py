"""The credential probe: a pod that finds, loads and uses the credential of one mount as the real consumer does."""

from __future__ import annotations

from typing import cast

import pulumi
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.meta import v1 as meta

from components.kubernetes.wiring import credential_path, wire
from identity.access.probe_pod import CONTAINER, probe_deployment, probe_labels, probe_pod
from identity.catalogue_rows import Mount


def credential_probe(
    name: str,
    image: str,
    mount: Mount,
    *,
    deployment: str,
    namespace: str,
    secret_provider_class: str,
    secret_name: str,
    proof: str,
    opts: pulumi.ResourceOptions,
) -> None:
    """Deployment of one probe; `proof` is its argument `--proof`. It is ready after sign-in and proof call."""
    pod = wire(
        probe_pod(image, credential_source(mount, secret_name), proof),
        mount,
        CONTAINER,
        secret_provider_class=secret_provider_class,
        secret_name=secret_name,
    )
    apps.Deployment(
        name,
        metadata=meta.ObjectMetaArgs(name=deployment, namespace=namespace, labels=probe_labels(deployment)),
        spec=cast(apps.DeploymentSpecArgsDict, probe_deployment(deployment, pod)),
        opts=opts,
    )


def credential_source(mount: Mount, secret_name: str) -> str:
    """The probe's `--credential`: where the real consumer of this mount finds the file's path."""
    if mount.credential_env is not None:
        return f"env:{mount.credential_env}"
    if mount.config is not None:
        return f"cloud-config:{mount.config.path}"
    return f"file:{credential_path(mount, secret_name)}"
