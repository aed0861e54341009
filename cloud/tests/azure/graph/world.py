"""Callers of the local Graph, and what they ask for."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.certificates import issue

GRAPH = "https://graph.microsoft.com"
As = Callable[[ServicePrincipal], httpx.Client]
"""A client of Graph that carries the service principal's token."""


def signed_in(azure: LocalAzure, *roles: str) -> ServicePrincipal:
    """A new service principal with these application permissions."""
    application = azure.directory.create_application("caller")
    principal = azure.directory.create_service_principal(application.app_id)
    for role in roles:
        azure.directory.grant(principal.object_id, role)
    granted = azure.directory.service_principal(principal.object_id)
    assert granted is not None
    return granted


def created(graph: httpx.Client, name: str = "app", **properties: Any) -> dict[str, Any]:
    answer = graph.post("/applications", json={"displayName": name, **properties})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def key(*, pem: bool = False, **changed: Any) -> dict[str, Any]:
    """A keyCredential for a new certificate of 90 days."""
    certificate = x509.load_pem_x509_certificate(issue().certificate_pem.encode())
    content = certificate.public_bytes(Encoding.PEM if pem else Encoding.DER)
    body = {"type": "AsymmetricX509Cert", "usage": "Verify", "key": base64.b64encode(content).decode()}
    return {**body, **changed}


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def values(answer: httpx.Response, name: str = "id") -> list[Any]:
    return [item[name] for item in answer.json()["value"]]
