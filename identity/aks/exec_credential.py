"""Kubernetes' exec credential protocol, the plugin's side (client.authentication.k8s.io, v1 and v1beta1).

Source: kubernetes.io/docs/reference/access-authn-authz/authentication, client-go credential plugins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from identity.azure.errors import LoginRefusedError
from identity.credentials import rfc3339

GROUP: Final = "client.authentication.k8s.io"
API_VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_VARIABLE: Final = "KUBERNETES_EXEC_INFO"


class ExecRequest:
    """The client's request in KUBERNETES_EXEC_INFO; raises LoginRefusedError for anything else.

    Attributes:
        api_version: that of the answer: client-go refuses any other than the kubeconfig's.
        interactive: whether a person may be asked; None if the client does not specify it.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.api_version = API_VERSIONS[0]
        self.interactive: bool | None = None
        text = environ.get(_VARIABLE)
        if not text:
            return
        try:
            document = json.loads(text)
            self.api_version = document["apiVersion"]
            self.interactive = (document.get("spec") or {}).get("interactive")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise LoginRefusedError(f"{_VARIABLE} holds no ExecCredential; let kubectl or client-go set it") from None
        if self.api_version not in API_VERSIONS:
            raise LoginRefusedError(
                f"{_VARIABLE} asks for {self.api_version}; offered are {' and '.join(API_VERSIONS)}: "
                "set apiVersion of the kubeconfig's exec block to one of them"
            )


def render(api_version: str, token: str, expires: datetime) -> str:
    """The ExecCredential with a token, one line of JSON."""
    document: dict[str, Any] = {
        "apiVersion": api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
        "status": {"token": token, "expirationTimestamp": rfc3339.render(expires.astimezone(UTC))},
    }
    return json.dumps(document, separators=(",", ":"))
