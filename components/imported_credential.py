"""Credential source `managed-identity`: the credential of a managed identity, issued by Azure's MSI data plane.

Nobody else can issue one, the identity's owner included, so the document comes from outside: as a secret
configuration value, as a file, or as a secret that the data plane's client has put into the stack's vault already,
which is then referenced, not copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulumi

from components.credential_secret import CredentialDates, Document, shown_facts
from identity.credentials import rfc3339
from identity.credentials.certificate import CLOCK_SKEW
from identity.credentials.document import InvalidCredential, validate, wrap
from identity.settings import ImportedCredentialSettings


@dataclass(frozen=True, kw_only=True)
class Principal:
    """An identity that exists: its client id, and the object id that roles are assigned to."""

    client_id: str
    object_id: str


@dataclass(frozen=True, kw_only=True)
class ImportedDocument:
    """A credential document that passed validation. `repr` does not show it."""

    text: str = field(repr=False)
    dates: CredentialDates
    thumbprint: str


@dataclass(frozen=True, kw_only=True)
class StoredDocument:
    """A document that is in the vault already. ARM shows the dates its owner wrote beside it, never the document."""

    not_after: str | None
    renew_after: str | None


@dataclass(frozen=True, kw_only=True)
class ImportedCredentialArgs:
    """Inputs of `ImportedCredential`."""

    principal: Principal
    document: ImportedDocument | StoredDocument


class ImportedCredential(pulumi.ComponentResource):
    """The credential of a managed identity.

    Outputs: `client_id`, `principal_id` (Output[str]), `document` (Document, None if it is in the vault already),
    `shown` (Output of notAfter, renewAfter and thumbprint, each a text or None).
    """

    def __init__(self, name: str, args: ImportedCredentialArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:ImportedCredential", name, None, opts)
        self.client_id = pulumi.Output.from_input(args.principal.client_id)
        self.principal_id = pulumi.Output.from_input(args.principal.object_id)
        self.document = _document(args.document)
        self.shown = pulumi.Output.from_input(_shown(args.document))
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id, "shown": self.shown})


def read_document(
    credential: ImportedCredentialSettings, *, now: datetime, tenant_id: str, client_id: str, object_encoding: str
) -> ImportedDocument:
    """Read and judge the document in a secret value or a file.

    Raises OSError or UnicodeDecodeError for a file that can not be read, and InvalidCredential with every problem of
    the document.
    """
    if credential.value is not None:
        text = credential.value.get_secret_value()
    else:
        text = Path(credential.file or "").read_text(encoding="utf-8")
    known = validate(
        wrap(text, object_encoding),
        now=now,
        expected_tenant=tenant_id,
        expected_client_id=client_id,
        object_encoding=object_encoding,
    )
    if known.not_after is None or known.renew_after is None or known.cannot_renew_after is None:
        raise AssertionError("validate lets no document pass that lacks a date")
    return ImportedDocument(
        text=text,
        dates=CredentialDates(
            not_before=known.not_before,
            not_after=known.not_after,
            renew_after=known.renew_after,
            cannot_renew_after=known.cannot_renew_after,
        ),
        thumbprint=known.thumbprint,
    )


def read_stored(secret: Mapping[str, Any], *, now: datetime) -> StoredDocument:
    """What ARM tells of the secret that holds the document: all but its value.

    Raises InvalidCredential with every reason for which no pod could use it.
    """
    attributes = secret["properties"].get("attributes") or {}
    begins, ends = (_moment(attributes.get(name)) for name in ("notBefore", "expires"))
    problems = []
    if attributes.get("enabled") is False:
        problems.append("enabled: found false, so that no pod can mount it; accepted: true; enable the secret")
    if begins is not None and begins > now + CLOCK_SKEW:
        found = f'nbf: found "{rfc3339.render(begins)}", which is to come'
        problems.append(f"{found}; accepted: a time that is past; wait until then")
    if ends is not None and ends <= now:
        found = f'exp: found "{rfc3339.render(ends)}", which is past'
        problems.append(f"{found}; accepted: a time to come; store the credential, issued again, as a new version")
    if problems:
        raise InvalidCredential(problems)
    return StoredDocument(
        not_after=None if ends is None else rfc3339.render(ends),
        renew_after=(secret.get("tags") or {}).get("renew_after"),
    )


def _moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _document(given: ImportedDocument | StoredDocument) -> Document | None:
    if isinstance(given, StoredDocument):
        return None
    return Document(text=pulumi.Output.secret(given.text), dates=pulumi.Output.from_input(given.dates))


def _shown(given: ImportedDocument | StoredDocument) -> dict[str, str | None]:
    if isinstance(given, StoredDocument):
        return {"notAfter": given.not_after, "renewAfter": given.renew_after, "thumbprint": None}
    return shown_facts(given.dates, given.thumbprint)
