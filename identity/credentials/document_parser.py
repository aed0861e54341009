"""Parses a stored credential document and collects all its problems, so that one error lists them."""

from __future__ import annotations

import binascii
import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from identity.credentials import key_material, rfc3339
from identity.credentials.byte_order_mark import foreign_encoding
from identity.credentials.key_material import KeyMaterial, UnreadableKeyMaterialError
from identity.credentials.pem import standard_base64

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
    if isinstance(value, bool):
        return "true or false"
    kinds = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object", type(None): "null"}
    return kinds[type(value)]
