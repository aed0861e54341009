"""SecretProviderClass: what the Secrets Store CSI driver fetches for a pod, and as which identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta import v1 as meta


@dataclass(frozen=True, kw_only=True)
class SecretProviderClassArgs:
    """Inputs of `SecretProviderClass`. `key_vault_user_client_id` is the identity that reads the vault.

    `annotations` are None for a class of the control-plane operator. `file` is the name of the mounted file, None for
    the secret's.
    """

    class_name: str
    namespace: str
    secret_name: str
    object_encoding: str
    vault_name: str
    tenant_id: str
    key_vault_user_client_id: pulumi.Input[str]
    annotations: Mapping[str, str] | None = None
    file: str | None = None


class SecretProviderClass(pulumi.ComponentResource):
    """One SecretProviderClass, as HyperShift's operators write it: no labels, no copy into a Kubernetes Secret."""

    def __init__(self, name: str, args: SecretProviderClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:SecretProviderClass", name, None, opts)
        CustomResource(
            f"{name}-object",
            api_version="secrets-store.csi.x-k8s.io/v1",
            kind="SecretProviderClass",
            metadata=meta.ObjectMetaArgs(name=args.class_name, namespace=args.namespace, annotations=args.annotations),
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


def _spec(args: SecretProviderClassArgs) -> dict[str, Any]:
    return {
        "provider": "azure",
        # The provider reads strings only: a YAML boolean fails the mount.
        "parameters": {
            "usePodIdentity": "false",
            "useVMManagedIdentity": "true",
            "userAssignedIdentityID": args.key_vault_user_client_id,
            "keyvaultName": args.vault_name,
            "tenantId": args.tenant_id,
            "objects": objects(args.secret_name, args.object_encoding, args.file),
        },
    }
