"""The resource of the project's own plugin that makes the key of etcd in the vault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.azure.plugin_resources import PluginResource


class EncryptionKey(PluginResource):
    """A key in the vault that encrypts a hosted cluster's etcd (`provider/encryption_key.py`).

    Args: `cloud` (name), `tenant_id`, `vault_id` (ARM id), `secret_name`, `tags`; `stack_owner`, the stack's owner id,
    None in a run that only renews.

    Outputs: `key_id` and `version` (str), none of them secret.
    """

    key_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        cloud: str,
        tenant_id: str,
        vault_id: str,
        secret_name: str,
        tags: Mapping[str, str],
        stack_owner: pulumi.Input[str] | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "cloud": cloud,
            "tenant_id": tenant_id,
            "vault_id": vault_id,
            "secret_name": secret_name,
            "source": "made",
            "tags": dict(tags),
            "owner_id": stack_owner,
        }
        super().__init__("EncryptionKey", name, inputs, ("key_id", "version"), opts)
