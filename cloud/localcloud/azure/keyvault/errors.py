"""Key Vault's own errors: `{"error": {"code", "message", "innererror": {"code"}}}`.

Seen in issues hashicorp/terraform-provider-azurerm 27817 and 23927 (ForbiddenByRbac), Azure/azure-rest-api-specs 9222
(deleted name), microsoft/AzureTRE 1951 (purge protection), and in Azure/azure-sdk-for-js's tests (SecretDisabled).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.shared import http
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.tenant.tokens import Caller


class VaultError(ServiceError):
    """An error of the data plane; `inner` distinguishes cases that share a `code`."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        inner: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, code, message, headers)
        self.inner = inner


def render(error: ServiceError) -> Response:
    content: dict[str, object] = {"code": error.code, "message": error.message}
    if isinstance(error, VaultError) and error.inner is not None:
        content["innererror"] = {"code": error.inner}
    return JSONResponse({"error": content}, status_code=error.status, headers=error.headers)


def unauthorized(message: str, challenge: str) -> VaultError:
    """401 with the challenge that names the authority and the resource to sign in for."""
    return VaultError(401, "Unauthorized", message, headers={"WWW-Authenticate": challenge})


def bad_parameter(message: str) -> VaultError:
    return VaultError(400, "BadParameter", message)


not_emulated: Final = partial(http.not_emulated, "keyvault")


def not_found(kind: str, name: str, version: str | None = None) -> VaultError:
    """404 `SecretNotFound`, `KeyNotFound` or `CertificateNotFound`; `kind`: secret, key or certificate."""
    name = f"{name}/{version}" if version else name
    return VaultError(
        404,
        f"{kind.capitalize()}NotFound",
        f"A {kind} with (name/id) {name} was not found in this key vault. If you recently deleted this {kind} you may "
        "be able to recover it using the correct recovery command. For help resolving this issue, please see "
        "https://go.microsoft.com/fwlink/?linkid=2125182",
    )


def issuer_not_found(name: str) -> VaultError:
    return VaultError(404, "CertificateIssuerNotFound", f"A Certificate Issuer with name {name} was not found.")


def secret_disabled() -> VaultError:
    return VaultError(403, "Forbidden", "Operation get is not allowed on a disabled secret.", inner="SecretDisabled")


def managed(operation: str) -> VaultError:
    """403: a certificate's secret is written and deleted with it (innererror in azure-sdk-for-js's recordings)."""
    return VaultError(
        403,
        "Forbidden",
        f'Operation "{operation}" is not allowed on this secret, since it is associated with a certificate. Perform '
        "the operation on the corresponding certificate. For more information refer to "
        "https://docs.microsoft.com/en-us/azure/key-vault/certificates/about-certificates#composition-of-a-certificate",
        inner="SecretManagedByKeyVault",
    )


def key_not_usable(operation: str, why: str, inner: str) -> VaultError:
    """403 for an operation that the key's attributes or its `key_ops` do not allow."""
    return VaultError(403, "Forbidden", f"Operation {operation} is not {why}.", inner=inner)


def name_is_deleted(name: str) -> VaultError:
    """409: a soft-deleted secret keeps its name."""
    return VaultError(
        409,
        "Conflict",
        f"Secret {name} is currently in a deleted but recoverable state, and its name cannot be reused; in this state, "
        "the secret can only be recovered or purged.",
        inner="ObjectIsDeletedButRecoverable",
    )


def throttled() -> VaultError:
    """429 without Retry-After: as in vcsjones/AzureSignTool issue 219, with all its headers."""
    return VaultError(
        429,
        "Throttled",
        "Request was not processed because too many requests were received. Reason: VaultRequestTypeLimitReached",
    )


def read_only(vault: str) -> VaultError:
    """403: during a failover nothing in a vault can be changed (azure-docs `disaster-recovery-guidance.md`)."""
    return VaultError(403, "Forbidden", f"The vault {vault} is in read-only mode.", inner="VaultIsReadOnly")


def purge_protected(vault: str, location: str) -> VaultError:
    return VaultError(
        403,
        "Forbidden",
        'Operation "purge" is not allowed because purge protection is enabled for this vault. Key Vault service will '
        "automatically purge it after the retention period has passed.\r\n"
        f"Vault: {vault};location={location}",
    )


def forbidden_by_rbac(caller: Caller, action: str, resource: str, vault: str, location: str) -> VaultError:
    """403: no role of the caller grants the data action."""
    return VaultError(
        403,
        "Forbidden",
        "Caller is not authorized to perform action on resource.\r\n"
        "If role assignments, deny assignments or role definitions were changed recently, please observe propagation "
        "time.\r\n"
        f"Caller: appid={caller.client_id};oid={caller.object_id};iss=https://sts.windows.net/{caller.tenant_id}/\r\n"
        f"Action: '{action}'\r\n"
        f"Resource: '{resource.lower()}'\r\n"
        "Assignment: (not found)\r\n"
        "DenyAssignmentId: null\r\n"
        "DecisionReason: 'DeniedWithNoValidRBAC' \r\n"
        f"Vault: {vault};location={location}\r\n",
        inner="ForbiddenByRbac",
    )
