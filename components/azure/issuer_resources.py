"""The resources of the project's own plugin that make an OIDC issuer: signing key and documents.

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
