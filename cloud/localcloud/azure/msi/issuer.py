"""Issues `UserAssignedIdentityCredentials` documents, as ARO HCP gets them from the first-party data plane.

The identity's owner cannot register a certificate with it, so this part writes to the directory directly. Dates follow
the data plane's: renew at half of the lifetime, not renewable in the last quarter.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.objects import KeyCredential
from localcloud.core import clock
from localcloud.core.certificates import CLOCK_SKEW, KeyMaterial, issue, parse
from localcloud.core.clock import parse_rfc3339, rfc3339

# A managed identity's credential document: msi-dataplane's `UserAssignedIdentityCredentials`, as JSON.
#
# Source: github.com/Azure/msi-dataplane v0.4.3, `pkg/dataplane/internal/client/models.go`; dates are RFC 3339.


class NoCredentialDocumentError(ValueError):
    """The text is not a credential document; the message does not contain it."""


@dataclass(frozen=True, kw_only=True)
class CredentialDocument:
    """Client and key; `renew_after` is None in a document without it."""

    client_id: str
    tenant_id: str
    key_material: KeyMaterial = field(repr=False)
    renew_after: datetime | None = None


def render_document(document: CredentialDocument, **others: str | datetime) -> str:
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


def read_document(text: str) -> CredentialDocument:
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


_KIND = "msi-credential"
LIFETIME = timedelta(days=90)
_RENEWED_AFTER = LIFETIME / 2
_NOT_RENEWED_AFTER = LIFETIME * 3 / 4
_CERTIFICATES_KEPT = 2  # the previous one stays valid while its holders still use it


class UnknownIdentityError(LookupError):
    """No managed identity has this resource id."""


def issue_credential(cloud: LocalAzure, resource_id: str, *, force_new: bool = False) -> str:
    """The credential document of a managed identity, JSON text; raises UnknownIdentityError.

    It is the same document, which is kept sealed, until it is due for renewal or `force_new` is set.
    """
    key = resource_id.lower()
    with cloud.store.transaction():
        identity = cloud.store.get("arm", key)
        if identity is None or "principalId" not in identity.get("properties", {}):
            raise UnknownIdentityError(f"no managed identity {resource_id}")
        object_id = identity["properties"]["principalId"]
        current = cloud.store.get(_KIND, key)
        if current is not None and current["objectId"] == object_id and not force_new:
            text = cloud.store.unseal(current["sealed"])
            if clock.now() < (read_document(text).renew_after or clock.now()):
                return text
        text = _issue(cloud, identity["id"], object_id)
        cloud.store.put(_KIND, key, {"objectId": object_id, "sealed": cloud.store.seal(text)})
    return text


def _issue(cloud: LocalAzure, resource_id: str, object_id: str) -> str:
    principal = cloud.directory.service_principal(object_id)
    if principal is None:
        raise UnknownIdentityError(f"the managed identity {resource_id} has no service principal")
    issued = issue(principal.display_name[:64], not_before=clock.now() - CLOCK_SKEW, lifetime=LIFETIME)
    registration, start = KeyCredential.of(issued.certificate), issued.certificate.not_valid_before_utc
    earlier = sorted(principal.key_credentials, key=lambda credential: credential.start, reverse=True)
    cloud.directory.set_key_credentials(object_id, [registration, *earlier[: _CERTIFICATES_KEPT - 1]])
    return render_document(
        CredentialDocument(
            client_id=principal.app_id,
            tenant_id=cloud.tenant_id,
            key_material=issued,
            renew_after=start + _RENEWED_AFTER,
        ),
        authentication_endpoint=cloud.authority_host,
        not_before=start,
        not_after=issued.certificate.not_valid_after_utc,
        cannot_renew_after=start + _NOT_RENEWED_AFTER,
        object_id=object_id,
        resource_id=resource_id,
    )
