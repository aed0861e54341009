"""A managed identity's credential document: msi-dataplane's `UserAssignedIdentityCredentials`, as JSON.

Source: github.com/Azure/msi-dataplane v0.4.3, `pkg/dataplane/internal/client/models.go`; dates are RFC 3339.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime

from localcloud.core.certificates import KeyMaterial, parse
from localcloud.core.clock import parse_rfc3339, rfc3339


class NoCredentialDocumentError(ValueError):
    """The text is not a credential document; the message does not contain it."""


@dataclass(frozen=True, kw_only=True)
class CredentialDocument:
    """Client and key; `renew_after` is None in a document without it."""

    client_id: str
    tenant_id: str
    key_material: KeyMaterial = field(repr=False)
    renew_after: datetime | None = None


def render(document: CredentialDocument, **others: str | datetime) -> str:
    """The document's JSON, with these fields of msi-dataplane besides; `client_secret` is base64 of PEM."""
    fields = {
        "client_id": document.client_id,
        "tenant_id": document.tenant_id,
        "client_secret": base64.b64encode(document.key_material.pem()).decode(),
        "renew_after": document.renew_after,
        **others,
    }
    texts = {key: rfc3339(value) if isinstance(value, datetime) else value for key, value in fields.items() if value}
    return json.dumps(texts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read(text: str) -> CredentialDocument:
    """The document in a text; raises `NoCredentialDocumentError`."""
    try:
        document = json.loads(text)
        renewed = document.get("renew_after")
        return CredentialDocument(
            client_id=document["client_id"],
            tenant_id=document["tenant_id"],
            key_material=parse(base64.b64decode(document["client_secret"], validate=True)),
            renew_after=parse_rfc3339(renewed) if renewed else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NoCredentialDocumentError("no credential document of a managed identity") from None
