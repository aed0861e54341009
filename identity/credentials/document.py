"""The credential document in a Key Vault secret: msi-dataplane's `UserAssignedIdentityCredentials`, as JSON.

`encode` writes it, `decode` reads what the upstream loader can read, `validate` also checks it before it is stored.

`decode` is stricter than the loader (github.com/Azure/msi-dataplane v0.4.3, pkg/dataplane/reloadCredentials.go) where
that one fails later or worse: an absent `not_before` makes it panic, an unreadable date or an empty `client_id` fails
at the next load or the first sign-in; docs/reference/loader.md has the list. Like the loader it ignores unknown keys
and a path in `authentication_endpoint`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cryptography import x509

from identity.credentials import rfc3339
from identity.credentials.certificate import thumbprint
from identity.credentials.certificate_rules import CLOCK_SKEW, KEY_SIZES
from identity.credentials.document_parser import AUTHORITY, DATES, OBJECT_ENCODINGS, REQUIRED, DocumentParser
from identity.credentials.key_material import KeyMaterial

# A Key Vault secret's limit, in bytes as stored.
MAX_BYTES: Final = 25 * 1024

_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


class InvalidCredentialError(ValueError):
    """A credential document that must not be used. `problems` holds every reason; none of them shows key material."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__(f"credential document: {count}\n" + "\n".join(f"- {problem}" for problem in self.problems))


@dataclass(frozen=True, kw_only=True)
class Credential:
    """What this program uses of a credential document. Dates are UTC; `repr` shows neither key nor certificate."""

    authentication_endpoint: str
    client_id: str
    tenant_id: str
    key_material: KeyMaterial = field(repr=False)
    not_before: datetime
    not_after: datetime | None = None
    renew_after: datetime | None = None
    cannot_renew_after: datetime | None = None

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate of the private key."""
        return self.key_material.chain[0]

    @property
    def thumbprint(self) -> str:
        """SHA-1 of the certificate in upper-case hexadecimal."""
        return thumbprint(self.certificate)

    @property
    def authority_host(self) -> str:
        """Scheme and host of the authority, without a trailing slash: the loader drops a path."""
        return AUTHORITY.sub(r"https://\g<host>", self.authentication_endpoint)

    @property
    def expires(self) -> datetime:
        """When it stops working: the certificate's end, or the document's if that is earlier."""
        end = self.certificate.not_valid_after_utc
        return end if self.not_after is None else min(end, self.not_after)


def encode(
    *,
    authentication_endpoint: str,
    client_id: str,
    tenant_id: str,
    certificate_pem: str,
    private_key_pem: str,
    not_before: datetime,
    not_after: datetime,
    renew_after: datetime,
    cannot_renew_after: datetime,
    object_id: str | None = None,
    object_encoding: str = "utf-8",
) -> str:
    """The secret's value: JSON as msi-dataplane writes it, then wrapped for `object_encoding`.

    Keys are sorted, there are no spaces, absent fields are dropped; `client_secret` is base64 of key and certificate
    in PEM.
    """
    bundle = f"{private_key_pem.rstrip()}\n{certificate_pem.rstrip()}\n"
    fields = {
        "authentication_endpoint": authentication_endpoint,
        "cannot_renew_after": rfc3339.render(cannot_renew_after),
        "client_id": client_id,
        "client_secret": base64.b64encode(bundle.encode("ascii")).decode("ascii"),
        "not_after": rfc3339.render(not_after),
        "not_before": rfc3339.render(not_before),
        "object_id": object_id,
        "renew_after": rfc3339.render(renew_after),
        "tenant_id": tenant_id,
    }
    present = {key: value for key, value in fields.items() if value is not None}
    return wrap(json.dumps(present, sort_keys=True, separators=(",", ":"), ensure_ascii=False), object_encoding)


def wrap(text: str, object_encoding: str) -> str:
    """`text` as a secret stores it for this `objectEncoding`; raises ValueError for an unknown one."""
    match object_encoding:
        case "utf-8":
            return text
        case "base64":
            return base64.b64encode(text.encode()).decode("ascii")
        case "hex":
            return text.encode().hex()
    raise ValueError(f"objectEncoding {object_encoding!r}: accepted are {', '.join(OBJECT_ENCODINGS)}")


def decode(text: str | bytes, *, object_encoding: str = "utf-8") -> Credential:
    """Read a stored secret value, or with the default encoding a mounted file; raises `InvalidCredentialError`."""
    return _credential(DocumentParser(text, object_encoding))


def validate(
    text: str,
    *,
    now: datetime,
    expected_tenant: str | None = None,
    expected_client_id: str | None = None,
    object_encoding: str = "utf-8",
) -> Credential:
    """Read a secret value that is about to be stored and validate it; raises `InvalidCredentialError` with every
    problem.

    Beyond `decode` it requires all four dates (msi-dataplane's storage helper refuses a document without them,
    pkg/dataplane/keyvault.go) in a sensible order, valid at `now` and not before the certificate; a UUID as client id;
    tenant and client id as expected, ignoring case; a key of at least 2048 bits; and at most `MAX_BYTES` as stored. It
    accepts what `unlikely_dates` names.
    """
    parser = DocumentParser(text, object_encoding, required=(*REQUIRED, *DATES[1:]))
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        parser.problems.append(
            f"size: found {size} bytes; accepted: at most {MAX_BYTES}, Key Vault's limit; "
            "store the key with its own certificate only"
        )
    _validate_identity(parser, expected_tenant, expected_client_id)
    _validate_dates(parser, now)
    if parser.key_material:
        _validate_certificate(parser, parser.key_material, now)
    return _credential(parser)


def unlikely_dates(credential: Credential) -> tuple[str, ...]:
    """What is wrong, in words, with the dates of a validated document that no loader reads.

    ARO-HCP's mock of the MSI data plane writes one date, a hundred years from now, whatever its certificate says
    (Azure/ARO-HCP backend/pkg/azure/client/hardcoded_identity_mi_dataplane_client.go).
    """
    end, remarks = credential.certificate.not_valid_after_utc, []
    if credential.not_after is not None and credential.not_after.replace(microsecond=0) > end:
        remarks.append(
            f"its not_after, {rfc3339.render(credential.not_after)}, is later than its certificate's end, "
            f"{rfc3339.render(end)}, which counts"
        )
    if credential.renew_after is not None and credential.renew_after >= credential.expires:
        remarks.append(f"it is to be renewed after {rfc3339.render(credential.renew_after)}, when it has ended already")
    return tuple(remarks)


def _credential(parser: DocumentParser) -> Credential:
    if parser.problems or parser.key_material is None:
        raise InvalidCredentialError(parser.problems)
    strings, dates = parser.strings, parser.dates
    return Credential(
        authentication_endpoint=strings["authentication_endpoint"],
        client_id=strings["client_id"],
        tenant_id=strings["tenant_id"],
        key_material=parser.key_material,
        not_before=dates["not_before"],
        not_after=dates.get("not_after"),
        renew_after=dates.get("renew_after"),
        cannot_renew_after=dates.get("cannot_renew_after"),
    )


def _validate_identity(parser: DocumentParser, expected_tenant: str | None, expected_client_id: str | None) -> None:
    client_id = parser.strings.get("client_id")
    if client_id and not _UUID.fullmatch(client_id):
        parser.refuse("client_id", parser.shown("client_id"), "write the client id")
    for name, expected in (("tenant_id", expected_tenant), ("client_id", expected_client_id)):
        value = parser.strings.get(name)
        if value and expected and value.lower() != expected.lower():
            parser.problems.append(
                f'{name}: found {parser.shown(name)}; accepted: "{expected}", as configured; '
                "take the credential of this identity, or correct the configuration"
            )


def _validate_dates(parser: DocumentParser, now: datetime) -> None:
    dates = parser.dates
    ascending = (
        ("not_before", "not_after", False),
        ("not_before", "renew_after", False),
        ("renew_after", "not_after", True),
        ("renew_after", "cannot_renew_after", True),
    )
    for earlier, later, may_be_equal in ascending:
        if earlier not in dates or later not in dates:
            continue
        if dates[earlier] > dates[later] or (dates[earlier] == dates[later] and not may_be_equal):
            parser.refuse(later, f"{parser.shown(later)}, which is not after {earlier}", "correct the dates")
    if "not_after" in dates and dates["not_after"] <= now:
        parser.refuse("not_after", f"{parser.shown('not_after')}, which is in the past", "issue the credential again")
    if "not_before" in dates and dates["not_before"] > now + CLOCK_SKEW:
        parser.refuse("not_before", f"{parser.shown('not_before')}, which is in the future", "wait until it is valid")


def _validate_certificate(parser: DocumentParser, material: KeyMaterial, now: datetime) -> None:
    start, end = material.chain[0].not_valid_before_utc, material.chain[0].not_valid_after_utc
    validity = f"{rfc3339.render(start)} to {rfc3339.render(end)}"
    if end <= now or start > now + CLOCK_SKEW:
        parser.problems.append(
            f"client_secret: found a certificate valid from {validity}; accepted: one that is valid now; "
            "issue the credential again"
        )
    before = parser.dates.get("not_before")
    # A certificate has whole seconds.
    if before and before.replace(microsecond=0) < start:
        parser.problems.append(
            f"not_before: found a date before the certificate's validity ({validity}); "
            "accepted: a date within it; copy it from the certificate"
        )
    size = material.private_key.key_size
    if size < KEY_SIZES[0]:
        parser.problems.append(
            f"client_secret: found an RSA key of {size} bits; accepted: {KEY_SIZES[0]} or more; issue a new certificate"
        )
