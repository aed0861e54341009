"""The documents in which an OIDC issuer publishes the keys of a cluster's service accounts.

They are those of `ccoctl azure create-oidc-issuer` (openshift/cloud-credential-operator
pkg/cmd/provisioning/azure/create_oidc_issuer.go, utils.go) and of openshift/hypershift at 3ee9615,
support/oidc/oidc.go:36-90.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
JWKS_PATH: Final = "/openid/v1/jwks"


class UnusableIssuerError(ValueError):
    """Documents of an issuer that Entra ID could not use."""


def discovery_document(issuer: str) -> bytes:
    """The document at `<issuer>/.well-known/openid-configuration`."""
    document = {
        "issuer": issuer,
        "jwks_uri": f"{issuer}{JWKS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    return _json(document)


def jwks_document(keys: Sequence[Mapping[str, str]]) -> bytes:
    """The document at `<issuer>/openid/v1/jwks`."""
    return _json({"keys": [dict(key) for key in keys]})


def keys_of_issuer(document_at: Callable[[str], bytes | None], issuer: str) -> dict[str, tuple[str, str]]:
    """The keys that Entra ID gets at an issuer, as `published_keys` returns them.

    `document_at` returns None for a missing document. Raises UnusableIssuerError, and what `document_at` raises.
    """
    discovery = document_at(f"{issuer}{DISCOVERY_PATH}")
    if discovery is None:
        raise UnusableIssuerError("there is no discovery document")
    jwks = document_at(jwks_address(discovery, issuer))
    if jwks is None:
        raise UnusableIssuerError("there is no JWKS")
    return published_keys(jwks)


def jwks_address(discovery: bytes, issuer: str) -> str:
    """Where an issuer's keys are; raises UnusableIssuerError unless the document is the issuer's own."""
    document = _parsed(discovery)
    if document.get("issuer") != issuer:
        raise UnusableIssuerError(f'its discovery document names the issuer "{document.get("issuer")}"')
    address = document.get("jwks_uri")
    if not isinstance(address, str) or not address.startswith("https://"):
        raise UnusableIssuerError("its discovery document names no jwks_uri that begins with https://")
    return address


def published_keys(jwks: bytes) -> dict[str, tuple[str, str]]:
    """Modulus and exponent of each RSA key by its id; raises UnusableIssuerError."""
    keys = _parsed(jwks).get("keys")
    if not isinstance(keys, list):
        raise UnusableIssuerError("its JWKS has no list of keys")
    rsa_keys = [key for key in keys if isinstance(key, dict) and key.get("kty") == "RSA"]
    return {str(key.get("kid")): (str(key.get("n")), str(key.get("e"))) for key in rsa_keys}


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise UnusableIssuerError("one of its documents is not JSON") from None
    if not isinstance(document, dict):
        raise UnusableIssuerError("one of its documents is not a JSON object")
    return document
