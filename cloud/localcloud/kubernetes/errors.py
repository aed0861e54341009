"""Refusals as Kubernetes `Status` objects, with the API server's own messages (apimachinery `pkg/api/errors`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse

from localcloud.kubernetes.kinds import ResourceKind


@dataclass(frozen=True)
class Cause:
    """One problem of an invalid object: its field path and the message."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class StatusError(Exception):
    """A refusal; `code` is the HTTP status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.metadata = metadata or {}

    def status(self) -> dict[str, Any]:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }

    def answer(self) -> JSONResponse:
        """The answer that refuses a request."""
        return JSONResponse(self.status(), self.code)


def not_found(kind: ResourceKind, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{kind.resource} "{name}" not found', _details(kind, name))


def no_such_resource() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def already_exists(kind: ResourceKind, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', _details(kind, name))


def conflict(kind: ResourceKind, name: str) -> StatusError:
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again",
        _details(kind, name),
    )


def invalid(kind: ResourceKind, name: str, causes: Sequence[Cause]) -> StatusError:
    resource = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return StatusError(
        422,
        "Invalid",
        f'{resource} "{name}" is invalid: {_sentences(causes)}',
        {**_details(kind, name), "kind": kind.kind, "causes": _documents(causes)},
    )


def invalid_options(kind: str, causes: Sequence[Cause]) -> StatusError:
    return StatusError(
        422,
        "Invalid",
        f'{kind}.meta.k8s.io "" is invalid: {_sentences(causes)}',
        {"group": "meta.k8s.io", "kind": kind, "causes": _documents(causes)},
    )


def patch_refused(cause: str) -> StatusError:
    """A JSON patch that cannot be applied to the object; kube-apiserver says no more either."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {"causes": [{"reason": "UnexpectedServerResponse", "message": cause}]})


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def method_not_allowed(method: str) -> StatusError:
    return StatusError(405, "MethodNotAllowed", f"the server does not allow {method} on the requested resource")


def unsupported_media_type(content_type: str, accepted: Sequence[str]) -> StatusError:
    return StatusError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format ({content_type or 'none'}) - "
        f"accepted media types include: {', '.join(accepted)}",
    )


def expired(message: str, metadata: dict[str, Any] | None = None) -> StatusError:
    return StatusError(410, "Expired", message, metadata=metadata)


def too_large_version(version: int, newest: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {version}, current: {newest}"
    return StatusError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def not_emulated(what: str) -> StatusError:
    message = f"The local cloud does not emulate {what} of the Kubernetes API; see COVERAGE.md."
    return StatusError(501, "NotEmulated", message)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def _sentences(causes: Sequence[Cause]) -> str:
    sentences = [f"{cause.field}: {cause.message}" for cause in causes]
    return sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"


def _documents(causes: Sequence[Cause]) -> list[dict[str, str]]:
    return [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]


def _details(kind: ResourceKind, name: str) -> dict[str, Any]:
    return {"name": name, "kind": kind.plural} | ({"group": kind.group} if kind.group else {})
