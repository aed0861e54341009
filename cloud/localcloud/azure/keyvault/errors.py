"""Key Vault's own form of an error, `{"error": {"code", "message", "innererror": {"code"}}}`, and what many raise."""

from __future__ import annotations

from functools import partial
from typing import Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.shared import refusals
from localcloud.azure.shared.refusals import ServiceError, refusal


def render(error: ServiceError) -> Response:
    inner = {"innererror": {"code": error.inner}} if error.inner else {}
    content = {"code": error.code, "message": error.message, **inner}
    return JSONResponse({"error": content}, status_code=error.status, headers=error.headers)


not_emulated: Final = partial(refusals.not_emulated, "keyvault")


def unauthorized(reason: str, challenge: str) -> ServiceError:
    """401 with the challenge that names the authority and the resource to sign in for."""
    return refusal("Unauthorized", {"WWW-Authenticate": challenge}, reason=reason)


def bad_parameter(problem: str) -> ServiceError:
    return refusal("BadParameter", problem=problem)


def not_found(kind: str, name: str, version: str | None = None) -> ServiceError:
    """404; `kind`: secret, key or certificate."""
    return refusal(f"{kind.capitalize()}NotFound", kind=kind, name=f"{name}/{version}" if version else name)
