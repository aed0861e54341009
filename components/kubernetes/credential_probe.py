"""The credential probe: a pod that finds, loads and uses the credential of one mount as the real consumer does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pulumi
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.meta import v1 as meta

from components.kubernetes.wiring import credential_path, wire
from identity.access.probe_pod import CONTAINER, probe_deployment, probe_labels, probe_pod
from identity.catalogue_rows import Mount


@dataclass(frozen=True, kw_only=True)
class CredentialProbeArgs:
    """Inputs of `CredentialProbe`. `proof` is the command-line argument `--proof`."""

    deployment: str
    namespace: str
    image: str
    mount: Mount
    secret_provider_class: str
    secret_name: str
    proof: str


class CredentialProbe(pulumi.ComponentResource):
    """Deployment of one probe. It is ready after sign-in and proof call."""

    def __init__(self, name: str, args: CredentialProbeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:CredentialProbe", name, None, opts)
        pod = wire(
            probe_pod(args.image, credential_source(args.mount, args.secret_name), args.proof),
            args.mount,
            CONTAINER,
            secret_provider_class=args.secret_provider_class,
            secret_name=args.secret_name,
        )
        apps.Deployment(
            f"{name}-deployment",
            metadata=meta.ObjectMetaArgs(
                name=args.deployment, namespace=args.namespace, labels=probe_labels(args.deployment)
            ),
            spec=cast(apps.DeploymentSpecArgsDict, probe_deployment(args.deployment, pod)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def credential_source(mount: Mount, secret_name: str) -> str:
    """The probe's `--credential`: where the real consumer of this mount finds the file's path."""
    if mount.credential_env is not None:
        return f"env:{mount.credential_env}"
    if mount.config is not None:
        return f"cloud-config:{mount.config.path}"
    return f"file:{credential_path(mount, secret_name)}"
