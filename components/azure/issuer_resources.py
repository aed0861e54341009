"""The resources of the project's own plugin that make an OIDC issuer: signing key, documents, Kubernetes Secret.

Every input is an output as well, under the same name. The modules in `provider/` describe what the resources do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.azure.plugin_resources import PluginResource


class SigningKey(PluginResource):
    """A key that signs service-account tokens, in the vault (`provider/signing_key.py`).

    Args: `cloud` (name), `tenant_id`, `vault_id` (ARM id), `secret_name`; `source` is `made`, `file` or `vault`: with
    `file` also its path `file` and `file_key_id`, the id of the key in it; `tags`;
    `stack_owner`: the owner id among them.

    Outputs: `key_id` (the `kid` of its tokens); `jwk` (RFC 7517) and `public_key_pem`, its public half.
    """

    key_id: pulumi.Output[str]
    jwk: pulumi.Output[Mapping[str, str]]
    public_key_pem: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        cloud: str,
        tenant_id: str,
        vault_id: str,
        secret_name: str,
        source: str,
        file: str | None,
        file_key_id: str | None,
        tags: Mapping[str, str],
        stack_owner: pulumi.Input[str] | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "cloud": cloud,
            "tenant_id": tenant_id,
            "vault_id": vault_id,
            "secret_name": secret_name,
            "source": source,
            "file": file,
            "file_key_id": file_key_id,
            "tags": dict(tags),
            "owner_id": stack_owner,
        }
        super().__init__("SigningKey", name, inputs, ("key_id", "jwk", "public_key_pem", "version"), opts)


class IssuerDocuments(PluginResource):
    """The discovery document and the keys of an issuer (`provider/issuer_documents.py`).

    Args: `cloud` (name), `tenant_id`, `issuer` (its address), `keys` (generation and JWK of each), `signing` (the
    generation that signs), `leaked` (generations that go before the order of a rotation lets them).

    Outputs: `published_since` (RFC 3339 by generation) and `signing_since`, both known in previews.
    """

    def __init__(
        self,
        name: str,
        *,
        cloud: str,
        tenant_id: str,
        issuer: str,
        keys: Sequence[Mapping[str, pulumi.Input[Any]]],
        signing: int,
        leaked: Sequence[int],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "cloud": cloud,
            "tenant_id": tenant_id,
            "issuer": issuer,
            "keys": list(keys),
            "signing": signing,
            "leaked": list(leaked),
        }
        super().__init__("IssuerDocuments", name, inputs, ("published_since", "signing_since"), opts)


class SigningKeySecret(PluginResource):
    """The Kubernetes Secret with the signing key (`provider/signing_key_secret.py`).

    Args: `kubeconfig` (secret), `context` in it (None: its current one), `cluster_id` (ARM id), `namespace`,
    `secret` (its name); of the key in the vault `cloud`, `tenant_id`, `vault_id`, `secret_name` and `key_id`;
    `old_public_keys` (PEM) of the other keys that the issuer publishes.
    """

    def __init__(
        self,
        name: str,
        *,
        kubeconfig: pulumi.Input[str],
        context: str | None,
        cluster_id: str,
        namespace: str,
        secret: str,
        cloud: str,
        tenant_id: str,
        vault_id: str,
        secret_name: str,
        key_id: pulumi.Input[str],
        old_public_keys: Sequence[pulumi.Input[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "kubeconfig": kubeconfig,
            "context": context,
            "cluster_id": cluster_id,
            "namespace": namespace,
            "name": secret,
            "cloud": cloud,
            "tenant_id": tenant_id,
            "vault_id": vault_id,
            "secret_name": secret_name,
            "key_id": key_id,
            "old_public_keys": list(old_public_keys),
        }
        super().__init__("SigningKeySecret", name, inputs, (), opts)
