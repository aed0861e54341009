"""The federated credentials of an application, as Graph reads and checks them.

Rules: Graph v1.0 reference of federatedIdentityCredential (names, one audience, at most 20), "Upsert
federatedIdentityCredential"; messages in azure-workload-identity issue 434 (issuer and subject) and azure-dev issue
1482 (name).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from localcloud.azure.graph.representation import without_annotations
from localcloud.azure.shared.http import ServiceError, not_emulated
from localcloud.azure.tenant.objects import Application

MEMBERS: Final = dict.fromkeys(
    ("id", "name", "issuer", "subject", "audiences", "description", "claimsMatchingExpression")
)
"""The members of a body."""
_MEMBERS: Final = ("name", "issuer", "subject", "audiences")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~-]{0,119}")
_LONGEST: Final = 600  # of issuer, subject and audience
_MOST: Final = 20


def find(entry: Application, key: str) -> Mapping[str, Any] | None:
    """The credential with this id, in any letter case, or this name."""
    return next(
        (credential for credential in entry.federated if credential["id"] == key.lower() or credential["name"] == key),
        None,
    )


def created(body: Mapping[str, Any], entry: Application) -> dict[str, Any]:
    """The credential that a POST or an upsert asks for; raises 400 and 409."""
    credential = _checked(body, {"id": str(uuid.uuid4()), "description": None}, entry)
    if not _NAME.fullmatch(credential["name"]):
        raise _invalid(
            "Name", f"The name '{credential['name']}' must have at most 120 characters, all of them URL friendly."
        )
    if any(other["name"] == credential["name"] for other in entry.federated):
        raise ServiceError(
            409,
            "Request_MultipleObjectsWithSameKeyValue",
            f"FederatedIdentityCredential with name {credential['name']} already exists.",
        )
    if len(entry.federated) >= _MOST:
        raise _invalid("", f"At most {_MOST} federated identity credentials are allowed for an application.")
    return credential


def changed(current: Mapping[str, Any], body: Mapping[str, Any], entry: Application) -> dict[str, Any]:
    """A credential after a PATCH; raises 400. Its name cannot be changed."""
    if body.get("name") not in (None, current["name"]):
        raise _invalid("Name", "The name of a federated identity credential cannot be changed.")
    return _checked(body, current, entry)


def _checked(body: Mapping[str, Any], before: Mapping[str, Any], entry: Application) -> dict[str, Any]:
    asked = without_annotations(body)
    assert isinstance(asked, dict)
    for name in asked:
        if name == "claimsMatchingExpression" and asked[name] is not None:
            raise not_emulated("graph", "claimsMatchingExpression of a federated identity credential")
    if asked.get("id") not in (None, before["id"]):
        raise ServiceError(400, "Request_BadRequest", "Property 'id' is read-only and cannot be set.")
    stated = {name: asked[name] for name in (*_MEMBERS, "description") if asked.get(name) is not None}
    credential = {**before, **stated}
    for name in _MEMBERS:
        if not credential.get(name):
            raise ServiceError(400, "Request_BadRequest", f"Invalid value specified for property '{name}'.")
    _check_values(credential)
    trusted = (credential["issuer"], credential["subject"])
    others = (other for other in entry.federated if other["id"] != credential["id"])
    if any((other["issuer"], other["subject"]) == trusted for other in others):
        raise _invalid(
            "Subject",
            "The combination of issuer and subject must be unique for the application. Issuer "
            f"{credential['issuer']} and Subject: {credential['subject']} already exist.",
        )
    return credential


def _check_values(credential: Mapping[str, Any]) -> None:
    issuer, subject, audiences = (credential[name] for name in ("issuer", "subject", "audiences"))
    parts = urlsplit(issuer) if isinstance(issuer, str) else None
    if parts is None or parts.scheme != "https" or not parts.netloc or len(issuer) > _LONGEST:
        raise _invalid("Issuer", f"The issuer must be an https URL of at most {_LONGEST} characters.")
    if not isinstance(subject, str) or len(subject) > _LONGEST:
        raise _invalid("Subject", f"The subject must have at most {_LONGEST} characters.")
    one = audiences[0] if isinstance(audiences, list) and len(audiences) == 1 else None
    if not isinstance(one, str) or len(one) > _LONGEST:
        raise _invalid("Audiences", "Exactly one audience must be given.")


def _invalid(member: str, problem: str) -> ServiceError:
    where = f" paramName: FederatedIdentityCredential.{member}," if member else ""
    return ServiceError(
        400,
        "InvalidFederatedIdentityCredentialValue",
        f"{problem}{where} objectType: Microsoft.Online.DirectoryServices.Application",
    )
