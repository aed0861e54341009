"""The credential documents of managed identities, read and validated before the first resource."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.azure.credential_secret import CredentialDates
from components.azure.imported_credential import ImportedDocument, StoredDocument
from identity.credentials import rfc3339
from identity.credentials.certificate import CLOCK_SKEW
from identity.credentials.document import InvalidCredentialError, unlikely_dates, validate, wrap
from identity.credentials.replacement import StoredBefore
from identity.credentials.secret_tags import THUMBPRINT
from identity.settings import ImportedCredentialSettings


def read_document(
    credential: ImportedCredentialSettings, *, now: datetime, tenant_id: str, client_id: str, object_encoding: str
) -> ImportedDocument:
    """Read and validate the document in a file.

    Raises OSError or UnicodeDecodeError for a file that cannot be read, and InvalidCredentialError with every problem
    of the document.
    """
    path = credential.file or ""
    text = Path(path).read_text(encoding="utf-8")
    known = validate(
        wrap(text, object_encoding),
        now=now,
        expected_tenant=tenant_id,
        expected_client_id=client_id,
        object_encoding=object_encoding,
    )
    if known.renew_after is None or known.cannot_renew_after is None:
        raise AssertionError("validate lets no document pass that lacks a date")
    return ImportedDocument(
        path=path,
        dates=CredentialDates(
            not_before=known.not_before,
            # What status and alerts go by: the certificate ends it, whatever the document says.
            not_after=known.expires,
            renew_after=known.renew_after,
            cannot_renew_after=known.cannot_renew_after,
        ),
        thumbprint=known.thumbprint,
        remarks=unlikely_dates(known),
    )


def read_stored(secret: Mapping[str, Any], *, now: datetime) -> StoredDocument:
    """Validate a secret that holds the document by its metadata, as ARM does not show its value.

    Args: `secret` is ARM's answer (Microsoft.KeyVault/vaults/secrets). Raises InvalidCredentialError with every reason
    why no pod could use it.
    """
    attributes = secret["properties"].get("attributes") or {}
    begins, ends = (_moment(attributes.get(name)) for name in ("notBefore", "expires"))
    problems = []
    if attributes.get("enabled") is False:
        problems.append("enabled: found false, so that no pod can mount it; accepted: true; enable the secret")
    if begins is not None and begins > now + CLOCK_SKEW:
        found = f'nbf: found "{rfc3339.render(begins)}", which is in the future'
        problems.append(f"{found}; accepted: a time in the past; wait until then")
    if ends is not None and ends <= now:
        found = f'exp: found "{rfc3339.render(ends)}", which is in the past'
        problems.append(f"{found}; accepted: a time in the future; have it issued again and store it as a new version")
    if problems:
        raise InvalidCredentialError(problems)
    return StoredDocument(
        not_after=None if ends is None else rfc3339.render(ends),
        renew_after=(secret.get("tags") or {}).get("renew_after"),
    )


def stored_before(secret: Mapping[str, Any], vault: str, name: str) -> StoredBefore:
    """What a vault has under the name that a document from a file is written to; `secret` as in `read_stored`."""
    begins = _moment((secret["properties"].get("attributes") or {}).get("notBefore"))
    return StoredBefore(vault, name, (secret.get("tags") or {}).get(THUMBPRINT), begins)


def _moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
