"""SecretProviderClass: what the Secrets Store CSI driver fetches for a pod, and as which identity."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from components.kubernetes.wiring import IdentityArgs


class SecretProviderClass(pulumi.ComponentResource):
    """One SecretProviderClass, as HyperShift's operators write it: no labels, no copy into a Kubernetes Secret."""

    def __init__(self, name: str, args: IdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:SecretProviderClass", name, None, opts)
        CustomResource(
            f"{name}-object",
            api_version="secrets-store.csi.x-k8s.io/v1",
            kind="SecretProviderClass",
            metadata=args.metadata(args.row.secret_provider_class),
            spec=_spec(args),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def objects(secret_name: str, object_encoding: str, file: str | None = None) -> str:
    """The parameter `objects`, byte for byte (`support/secretproviderclass/secretproviderclass.go:12-20`).

    Another file name than the secret's is an alias, which no class of HyperShift's has.
    """
    alias = "" if file is None else f"    objectAlias: {file}\n"
    return (
        f"\narray:\n  - |\n    objectName: {secret_name}\n{alias}"
        f"    objectEncoding: {object_encoding}\n"
        "    objectType: secret\n"
    )


def _spec(args: IdentityArgs) -> dict[str, Any]:
    context = args.context
    return {
        "provider": "azure",
        # The provider reads strings only: a YAML boolean fails the mount.
        "parameters": {
            "usePodIdentity": "false",
            "useVMManagedIdentity": "true",
            "userAssignedIdentityID": context.store.key_vault_user_client_id,
            "keyvaultName": context.store.vault_name,
            "tenantId": context.settings.tenant_id,
            "objects": objects(
                args.secret_name, context.cluster.identity(args.row).object_encoding, args.row.mounts[0].file
            ),
        },
    }
