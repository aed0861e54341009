"""The common part of API clients: URL paths of objects, and errors."""

from __future__ import annotations

from typing import Any, TypeAlias

import httpx

Object: TypeAlias = dict[str, Any]


class ApiError(Exception):
    """An error of the API server: HTTP status, reason and message of its Status object."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason

    @classmethod
    def of(cls, response: httpx.Response) -> ApiError:
        """The error in an HTTP response with any body."""
        try:
            status = response.json()
        except ValueError:
            status = {}
        return cls(response.status_code, status.get("reason", ""), status.get("message", response.reason_phrase))


def path(root: str, plural: str, namespace: str | None, *parts: str | None) -> str:
    """URL path below a group version's `root`: of a collection, or of the object and subresource in `parts`."""
    place = f"/namespaces/{namespace}" if namespace else ""
    return "/".join(filter(None, (f"{root}{place}/{plural}", *parts)))
