"""The credential probe: a pod that finds, loads and uses the credential of one mount as the real consumer does."""

from __future__ import annotations

from typing import cast

import pulumi
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.meta import v1 as meta

from components.kubernetes.identity_args import ConsumerArgs
from components.kubernetes.wiring import wire
from identity.aks.probe_pod import CONTAINER, probe_deployment, probe_labels, probe_pod, proof_argument
from identity.settings.proof_target import proof_target


class CredentialProbe(pulumi.ComponentResource):
    """Deployment of one probe. It is ready after sign-in and proof call."""

    def __init__(self, name: str, args: ConsumerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:CredentialProbe", name, None, opts)
        settings, row, deployment = args.settings, args.row, args.row.probe_name(args.mount)
        proof = proof_argument(row.proof, settings.cloud, proof_target(settings, args.cluster))
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
                name=deployment, namespace=args.cluster.namespace_name, labels=probe_labels(deployment)
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
