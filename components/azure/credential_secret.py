"""The Key Vault secret that carries one identity's credential document to its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

import pulumi
from pulumi_azure_native import keyvault

from components.azure.credential_store import CredentialStore
from identity.credentials import rfc3339
from identity.credentials.document import wrap


@dataclass(frozen=True, kw_only=True)
class CredentialDates:
    """The four dates of a document (UTC, whole seconds)."""

    not_before: datetime
    not_after: datetime
    renew_after: datetime
    cannot_renew_after: datetime


class CredentialSummary(TypedDict):
    """What the stack's outputs show of a credential. Dates are RFC 3339 in UTC; nothing of it is secret.

    If another tool stored the credential in the vault, its thumbprint is None, and each date that it did not write.
    """

    notAfter: str | None
    renewAfter: str | None
    thumbprint: str | None  # SHA-1, upper-case hexadecimal


@dataclass(frozen=True, kw_only=True)
class CredentialDocument:
    """A credential document to store: `text` is JSON and always secret, its dates are not secret."""

    text: pulumi.Output[str]
    dates: pulumi.Output[CredentialDates]


@dataclass(frozen=True, kw_only=True)
class CredentialSecretArgs:
    """Inputs of `CredentialSecret`. In its `object_encoding` the document has 25 KB at most (Key Vault's limit)."""

    secret_name: str
    object_encoding: str
    store: CredentialStore
    document: CredentialDocument
    tags: Mapping[str, str]


class CredentialSecret(pulumi.ComponentResource):
    """A secret in msi-dataplane's storage format (pkg/dataplane/keyvault.go).

    The secret's attributes hold the validity, its tags the renewal dates. A rotation is a new version of the same
    secret. Outputs: `secret_name` (str, known before it exists).
    """

    def __init__(self, name: str, args: CredentialSecretArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:CredentialSecret", name, None, opts)
        stored = args.document.text.apply(lambda text: wrap(text, args.object_encoding))
        dates = args.document.dates
        keyvault.Secret(
            f"{name}-secret",
            secret_name=args.secret_name,
            resource_group_name=args.store.resource_group,
            vault_name=args.store.vault_name,
            properties=keyvault.SecretPropertiesArgs(
                value=stored,
                content_type="application/json",
                attributes=keyvault.SecretAttributesArgs(
                    enabled=True,
                    not_before=dates.apply(lambda known: int(known.not_before.timestamp())),
                    expires=dates.apply(lambda known: int(known.not_after.timestamp())),
                ),
            ),
            tags={
                **args.tags,
                "renew_after": dates.apply(lambda known: rfc3339.render(known.renew_after)),
                "cannot_renew_after": dates.apply(lambda known: rfc3339.render(known.cannot_renew_after)),
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=args.store.vault),
        )
        self.secret_name = args.secret_name
        self.register_outputs({"secret_name": self.secret_name})


def summary_of(dates: CredentialDates, thumbprint: str) -> CredentialSummary:
    """The summary of a credential whose document the stack knows."""
    return {
        "notAfter": rfc3339.render(dates.not_after),
        "renewAfter": rfc3339.render(dates.renew_after),
        "thumbprint": thumbprint,
    }
