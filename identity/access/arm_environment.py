"""Signs in to Azure as the engine's provider plugins do: by the ARM_* variables, else as the Azure CLI."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import httpx
from azure.core.credentials import TokenCredential
from azure.identity import (
    AzureCliCredential,
    CertificateCredential,
    ClientAssertionCredential,
    ClientSecretCredential,
    ManagedIdentityCredential,
)

# What a pipeline's token for Entra ID is issued for.
_ASSERTION_AUDIENCE: Final = "api://AzureADTokenExchange"


class Method(StrEnum):
    """With what the deployer signs in, in the order in which azure-native and azuread look for it.

    Source: pulumi-azure-native `provider/pkg/provider/auth_azidentity.go`, newSingleMethodAuthCredential.
    """

    CERTIFICATE = "certificate"
    SECRET = "secret"
    OIDC = "oidc"
    MANAGED_IDENTITY = "managed-identity"
    AZURE_CLI = "azure-cli"


def method(environ: Mapping[str, str]) -> Method:
    """What the variables decide."""
    if environ.get("ARM_CLIENT_CERTIFICATE_PATH"):
        return Method.CERTIFICATE
    if environ.get("ARM_CLIENT_SECRET"):
        return Method.SECRET
    if _is_set(environ, "ARM_USE_OIDC"):
        return Method.OIDC
    return Method.MANAGED_IDENTITY if _is_set(environ, "ARM_USE_MSI") else Method.AZURE_CLI


def credential(tenant_id: str, environ: Mapping[str, str] = os.environ, **options: Any) -> TokenCredential:
    """The credential for the tenant; `options` (authority, connection_verify) go to it."""
    client_id = environ.get("ARM_CLIENT_ID", "")
    match method(environ):
        case Method.CERTIFICATE:
            path, password = environ["ARM_CLIENT_CERTIFICATE_PATH"], environ.get("ARM_CLIENT_CERTIFICATE_PASSWORD")
            return CertificateCredential(tenant_id, client_id, path, password=password, **options)
        case Method.SECRET:
            return ClientSecretCredential(tenant_id, client_id, environ["ARM_CLIENT_SECRET"], **options)
        case Method.OIDC:
            return ClientAssertionCredential(tenant_id, client_id, assertion(environ), **options)
        case Method.MANAGED_IDENTITY:
            return ManagedIdentityCredential(client_id=client_id or None)
    return AzureCliCredential(tenant_id=tenant_id)


def _is_set(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() in {"true", "1"}


def assertion(environ: Mapping[str, str]) -> Callable[[], str]:
    """Where a fresh token of the pipeline comes from: a variable, a file, or GitHub's endpoint."""
    if token := environ.get("ARM_OIDC_TOKEN"):
        return lambda: token
    if path := environ.get("ARM_OIDC_TOKEN_FILE_PATH"):
        return lambda: Path(path).read_text(encoding="utf-8").strip()
    url = environ.get("ARM_OIDC_REQUEST_URL") or environ.get("ACTIONS_ID_TOKEN_REQUEST_URL", "")
    bearer = environ.get("ARM_OIDC_REQUEST_TOKEN") or environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")

    def requested() -> str:
        # GitHub's address has a query already.
        asked = httpx.URL(url).copy_add_param("audience", _ASSERTION_AUDIENCE)
        response = httpx.get(asked, headers={"Authorization": f"Bearer {bearer}"})
        response.raise_for_status()
        return str(response.json()["value"])

    return requested
