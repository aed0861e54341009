"""The Kubernetes Secrets with a key of a hosted cluster, which the project's own plugin writes out of the vault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.azure.plugin_resources import PluginResource


@dataclass(frozen=True, kw_only=True)
class KeySecretArgs:
    """Inputs of every such Secret (`provider/key_secret.py`).

    `kubeconfig` (secret), `context` in it (None: its current one), `cluster_id` (ARM id), `namespace`, `name`; of the
    key in the vault `cloud`, `tenant_id`, `vault_id` (ARM id), `secret_name` and `key_id`.
    """

    kubeconfig: pulumi.Input[str]
    context: str | None
    cluster_id: str
    namespace: str
    name: str
    cloud: str
    tenant_id: str
    vault_id: str
    secret_name: str
    key_id: pulumi.Input[str]


class SigningKeySecret(PluginResource):
    """The Secret with the signing key (`provider/signing_key_secret.py`).

    Args: `args`; `old_public_keys` (PEM) of the other keys that the issuer publishes.
    """

    def __init__(
        self,
        name: str,
        args: KeySecretArgs,
        old_public_keys: Sequence[pulumi.Input[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {**vars(args), "old_public_keys": list(old_public_keys)}
        super().__init__("SigningKeySecret", name, inputs, (), opts)


class EncryptionKeySecret(PluginResource):
    """The Secret with the key of etcd (`provider/encryption_key_secret.py`)."""

    def __init__(self, name: str, args: KeySecretArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("EncryptionKeySecret", name, dict(vars(args)), (), opts)
