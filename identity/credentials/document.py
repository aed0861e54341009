"""The credential document in a Key Vault secret: msi-dataplane's `UserAssignedIdentityCredentials`, as JSON.

`encode` writes it, `decode` reads what the upstream loader can read, `validate` also checks it before it is stored, and
`StoredBefore` decides whether it may replace the one in the vault.

`decode` is stricter than the loader (github.com/Azure/msi-dataplane v0.4.3, pkg/dataplane/reloadCredentials.go) where
that one fails later or worse: an absent `not_before` makes it panic, an unreadable date or an empty `client_id` fails
at the next load or the first sign-in; docs/reference/loader.md has the list. Like the loader it ignores unknown keys
and a path in `authentication_endpoint`.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from cryptography import x509

from identity.credentials import key_material, rfc3339
from identity.credentials.byte_order_mark import foreign_encoding
from identity.credentials.certificate import thumbprint
from identity.credentials.certificate_rules import CLOCK_SKEW, KEY_SIZES
from identity.credentials.key_material import KeyMaterial, UnreadableKeyMaterialError, standard_base64

# The CSI driver's Azure provider decodes these before it writes the file (pkg/provider/provider.go:694-710).
OBJECT_ENCODINGS: Final = ("utf-8", "base64", "hex")

# The loader drops a path and needs https. `is_authority` also looks at what the pattern leaves open.
AUTHORITY: Final = re.compile(
    r"https://(?P<host>((?P<name>[0-9A-Za-z._-]+)|\[(?P<ipv6>[0-9A-Fa-f:.]+)\])(:(?P<port>[0-9]{1,5}))?)(/\S*)?",
    re.IGNORECASE,
)
_HIGHEST_PORT: Final = 65535
# RFC 1035, 2.3.4.
_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 253
# azidentity's own rule for a tenant (validTenantID).
_TENANT: Final = re.compile(r"[0-9A-Za-z.-]+")

REQUIRED: Final = ("authentication_endpoint", "client_id", "client_secret", "not_before", "tenant_id")
DATES: Final = ("not_before", "not_after", "renew_after", "cannot_renew_after")
CARRIED: Final = ("client_secret_url", "mtls_authentication_endpoint", "object_id", "resource_id")

_ACCEPTED: Final = {
    "authentication_endpoint": "an https URL of the authority, such as https://login.microsoftonline.com/",
    "client_id": "the client id (a UUID) of the application or managed identity",
    "client_secret": "standard padded base64 of a PEM bundle or of PKCS#12 without a password",
    "tenant_id": "a tenant id: letters, digits, '.' and '-'",
    **dict.fromkeys(DATES, f"RFC 3339, such as {rfc3339.EXAMPLE}"),
}
# A value is shown only if it has this shape; anything else may be a key in the wrong place.
_SHOWABLE: Final = {
    "authentication_endpoint": re.compile(r"https?://[0-9A-Za-z.:-]{1,100}/?", re.IGNORECASE),
    "client_id": re.compile(r"[0-9A-Fa-f-]{1,40}"),
    "tenant_id": re.compile(r"[0-9A-Fa-f-]{1,40}"),
    **dict.fromkeys(DATES, re.compile(r"[0-9TZ:.+ -]{1,40}", re.IGNORECASE)),
}


def is_authority(url: str) -> bool:
    """Whether azure-identity and MSAL can ask there: https, a port, and a host that is a name (IDNA in its ASCII form)
    or an address. They raise whatever their libraries do for another one.
    """
    parts = AUTHORITY.fullmatch(url)
    if parts is None or (parts["port"] and not 0 < int(parts["port"]) <= _HIGHEST_PORT):
        return False
    if parts["ipv6"]:
        return _is_address(parts["ipv6"], ipaddress.IPv6Address)
    name = parts["name"].removesuffix(".")
    labels = name.split(".")
    if labels[-1].isdigit():  # such a name is an address for every resolver
        return _is_address(name, ipaddress.IPv4Address)
    return len(name) <= _LONGEST_NAME and all(0 < len(label) <= _LONGEST_LABEL for label in labels)


def _is_address(text: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


class DocumentParser:
    """What could be read of a stored document, and `problems`: everything that could not.

    `strings` holds the string fields, `dates` the parsed dates. `stored` is a secret's value or a mounted file.
    """

    def __init__(self, stored: str | bytes, object_encoding: str, required: Sequence[str] = REQUIRED) -> None:
        self.problems: list[str] = []
        self.strings: dict[str, str] = {}
        self.dates: dict[str, datetime] = {}
        self.key_material: KeyMaterial | None = None
        document = self._document(stored, object_encoding)
        if document is not None:
            self._read_strings(document, required)
            self._read_endpoint_and_tenant()
            self._read_dates()
            self._read_secret()
            self._read_claims(document.get("custom_claims"))

    def refuse(self, name: str, found: str, fix: str) -> None:
        """Note that field `name` is wrong: what was found, what is accepted, what to do."""
        self.problems.append(f"{name}: found {found}; accepted: {_ACCEPTED.get(name, 'a string')}; {fix}")

    def shown(self, name: str) -> str:
        """The field's value for a message, unless it could be something secret in the wrong place."""
        text = self.strings[name]
        shape = _SHOWABLE.get(name)
        return (
            f'"{text}"' if shape and shape.fullmatch(text) else f"a string of {len(text)} characters that is not shown"
        )

    def _document(self, stored: str | bytes, object_encoding: str) -> Mapping[str, Any] | None:
        text = self._unwrapped(stored, object_encoding)
        if text is None:
            return None
        try:
            document = json.loads(text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            problem = f"{error.msg} at line {error.lineno}, column {error.colno}"
        except (ValueError, RecursionError):  # NaN, a number of thousands of digits, thousands of brackets
            problem = "a value JSON does not have, or one too large"
        else:
            if isinstance(document, dict):
                return document
            problem = f"{_kind(document)} instead of an object"
        # Outside of the handler, so that the error in flight does not carry the document along as its context.
        self.problems.append(
            f"document: found no JSON object ({problem}; {len(text)} characters); "
            "accepted: the JSON of UserAssignedIdentityCredentials in UTF-8 without a byte-order mark; "
            "store the document itself, wrapped exactly as objectEncoding states"
        )
        return None

    def _unwrapped(self, stored: str | bytes, object_encoding: str) -> str | None:
        if object_encoding not in OBJECT_ENCODINGS:
            self.problems.append(f"objectEncoding: found another word; accepted: {', '.join(OBJECT_ENCODINGS)}")
            return None
        try:
            data = stored.encode() if isinstance(stored, str) else stored
            if object_encoding == "base64":
                data = standard_base64(data)
            elif object_encoding == "hex":
                data = binascii.unhexlify(data)
            if encoding := foreign_encoding(data):
                self.problems.append(
                    f"document: found {encoding}; accepted: the JSON of UserAssignedIdentityCredentials in UTF-8 "
                    "without a byte-order mark; convert the document, then store it again"
                )
                return None
            return data.decode("utf-8")
        except ValueError:  # binascii.Error and the two Unicode errors are kinds of it
            pass
        self.problems.append(
            f"document: found a value that is not {object_encoding}; accepted: the JSON, stored as {object_encoding}; "
            "store it so, or set the identity's objectEncoding to what is stored"
        )
        return None

    def _read_strings(self, document: Mapping[str, Any], required: Sequence[str]) -> None:
        for name in (*REQUIRED, *DATES[1:], *CARRIED):
            value = document.get(name)
            if isinstance(value, str):
                self.strings[name] = value
            elif value is not None:
                self.refuse(name, _kind(value), "write it as a JSON string")
            elif name in required:
                camel_case = re.sub(r"_(.)", lambda match: match[1].upper(), name)
                fix = f'rename "{camel_case}" to "{name}"' if camel_case in document else "add it"
                self.refuse(name, "nothing", fix)
        if self.strings.get("client_id") == "":
            self.refuse("client_id", "an empty string", "write the client id")

    def _read_endpoint_and_tenant(self) -> None:
        for name, is_sound in (("authentication_endpoint", is_authority), ("tenant_id", _TENANT.fullmatch)):
            if name in self.strings and not is_sound(self.strings[name]):
                self.refuse(name, self.shown(name), "correct it")

    def _read_dates(self) -> None:
        for name in DATES:
            if name not in self.strings:
                continue
            try:
                self.dates[name] = rfc3339.parse(self.strings[name])
            except ValueError:
                self.refuse(name, self.shown(name), "write the time with seconds and with Z or an offset")

    def _read_secret(self) -> None:
        secret = self.strings.get("client_secret")
        if secret is None:
            return
        try:
            data = standard_base64(secret.encode())
        except ValueError:
            found = f"{len(secret)} characters that are not base64"
            self.refuse("client_secret", found, "encode the bundle with `base64 -w0`")
            return
        try:
            self.key_material = key_material.parse(data)
        except UnreadableKeyMaterialError as error:
            self.problems.extend(f"client_secret: {problem}" for problem in error.problems)

    def _read_claims(self, claims: object) -> None:
        if claims is None or (isinstance(claims, dict) and _has_claim_types(claims)):
            return
        self.problems.append(
            f"custom_claims: found {_kind(claims)} of another shape; "
            'accepted: {"xms_az_nwperimid": [strings], "xms_az_tm": string}; drop the field if nothing needs it'
        )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _has_claim_types(claims: Mapping[str, Any]) -> bool:
    perimeters, token_mode = claims.get("xms_az_nwperimid"), claims.get("xms_az_tm")
    are_strings = isinstance(perimeters, list) and all(isinstance(perimeter, str | None) for perimeter in perimeters)
    return (perimeters is None or are_strings) and isinstance(token_mode, str | None)


def _kind(value: object) -> str:
    kinds = {str: "a string", bool: "true or false", list: "a list", dict: "an object", type(None): "null"}
    return kinds.get(type(value), "a number")


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


@dataclass(frozen=True)
class StoredBefore:
    """The document in the secret of that name, in the vault of that name: its thumbprint (tag) and `nbf` (UTC)."""

    vault: str
    secret: str
    thumbprint: str | None
    not_before: datetime | None

    def why_it_stays(self, thumbprint: str, not_before: datetime) -> str | None:
        """Why the document of this certificate must not replace it; None if it may.

        A loader accepts only a later document (msi-dataplane pkg/dataplane/reloadCredentials.go:165-194), so an older
        one would reach only pods that start.
        """
        if self.not_before is None or self.thumbprint == thumbprint or not_before > self.not_before:
            return None
        if not_before == self.not_before and self.thumbprint is None:
            return None
        begins = rfc3339.render(self.not_before)
        return f"it begins at {rfc3339.render(not_before)}, and the one in the secret {self.secret} at {begins}"

    @property
    def ways_out(self) -> str:
        """What helps if the document is older."""
        return (
            "take the document that the secret has, or have a later one issued; if the secret's date is wrong, "
            f"`az keyvault secret set-attributes --vault-name {self.vault} --name {self.secret} --not-before <date>` "
            "corrects it"
        )
