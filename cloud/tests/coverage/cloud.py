"""Every service of the local Azure in this process, spoken to without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from localcloud.azure.aks_webhooks.api import app as aks_webhooks_app
from localcloud.azure.blob.api import app as blob_app
from localcloud.azure.entra.api import app as entra_app
from localcloud.azure.graph.api import app as graph_app
from localcloud.azure.graph.permissions import WRITE_OWNED
from localcloud.azure.imds.api import app as imds_app
from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.arm import ArmWorld
from localcloud.testing.azure import ask

AUTHORITY = "https://login.microsoftonline.com"
AKS_CLIENT = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
AKS_SCOPE = "6dae42f8-4368-4678-94ff-3960e28e3630/.default openid offline_access profile"
USER = "ada@idstack.local"


class CoverageCloud(ArmWorld):
    """A subscription with a vault in it, whose deployer may do everything the stack does, at Graph as well."""

    def __init__(self, folder: Path, faults: Faults = NO_DELAYS) -> None:
        super().__init__(folder, faults)
        self.entra = entra_app(self.cloud)
        self.imds = imds_app(self.cloud)
        self.graph_service = graph_app(self.cloud)
        self.blob_service = blob_app(self.cloud)
        self.aks_webhooks = aks_webhooks_app(self.cloud)
        self.cloud.directory.grant(self.deployer.object_id, WRITE_OWNED)
        self.create_vault()

    def services(self) -> dict[str, Starlette]:
        """The applications by the names of their services."""
        return {
            "arm": self.arm,
            "entra": self.entra,
            "graph": self.graph_service,
            "keyvault": self.keyvault,
            "blob": self.blob_service,
            "imds": self.imds,
            "aks-webhooks": self.aks_webhooks,
        }

    def graph(
        self, method: str, path: str, body: object = None, *, anonymous: bool = False, **query: str
    ) -> httpx.Response:
        """One request to Graph as the deployer; `anonymous`: without a bearer; `query`: of its parameters."""
        deployer = self.cloud.directory.service_principal(self.deployer.object_id)
        assert deployer is not None
        token = None if anonymous else self.cloud.tokens.issue(deployer, "https://graph.microsoft.com")
        params = {f"${name}": value for name, value in query.items()}
        graph = "https://graph.microsoft.com"
        return ask(self.graph_service, graph, method, f"/v1.0{path}", token=token, params=params, json=body)

    def token(self, form: dict[str, str], tenant: str | None = None) -> httpx.Response:
        """A token request."""
        return self._post(f"/{tenant or self.cloud.tenant_id}/oauth2/v2.0/token", form)

    def device_code(self, client_id: str = AKS_CLIENT) -> dict[str, Any]:
        """The answer to a request for a device code for AKS."""
        form = {"client_id": client_id, "scope": AKS_SCOPE}
        return dict(self._post(f"/{self.cloud.tenant_id}/oauth2/v2.0/devicecode", form).json())

    def decide(self, user_code: str, login: str = USER, action: str = "approve") -> int:
        """What a person does on the page for codes; returns the status of the answer."""
        return self._post("/common/oauth2/deviceauth", {"otc": user_code, "login": login, "action": action}).status_code

    def poll(
        self, device_code: str, client_id: str = AKS_CLIENT, grant: str = "urn:ietf:params:oauth:grant-type:device_code"
    ) -> httpx.Response:
        """A token request by a device code."""
        return self.token({"grant_type": grant, "client_id": client_id, "device_code": device_code})

    def refresh(self, token: str, client_id: str = AKS_CLIENT) -> httpx.Response:
        """A token request by a refresh token."""
        form = {"grant_type": "refresh_token", "client_id": client_id, "scope": AKS_SCOPE, "refresh_token": token}
        return self.token(form)

    def _post(self, path: str, form: dict[str, str]) -> httpx.Response:
        return ask(self.entra, AUTHORITY, "POST", path, data=form)

    def metadata(self, headers: dict[str, str], **query: str) -> httpx.Response:
        """A token request to IMDS."""
        path = "/metadata/identity/oauth2/token"
        return ask(self.imds, "http://169.254.169.254", "GET", path, params=query, headers=headers)

    def without(self, service: Any, base: str, method: str, path: str, **query: str) -> httpx.Response:
        """A request without a bearer."""
        return ask(service, base, method, path, params=query)

    def nobody(self) -> ServicePrincipal:
        """A principal without any role."""
        return self.principal()


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[CoverageCloud]:
    """Every service, without delays."""
    built = CoverageCloud(tmp_path)
    yield built
    built.store.close()


Provoke = Callable[[CoverageCloud], httpx.Response]
"""One request, or several whose last answer counts."""


def after(*before: Callable[[CoverageCloud], Any], then: Provoke) -> Provoke:
    """The same, once these have been made; those of them that are requests must succeed."""

    def provoke(cloud: CoverageCloud) -> httpx.Response:
        for step in before:
            made = step(cloud)
            assert not isinstance(made, httpx.Response) or made.is_success, made.text
        return then(cloud)

    return provoke


def call(method: str, path: str, body: object = None, **options: Any) -> Provoke:
    """A request to ARM; `options` as `ArmWorld.call` has them."""
    return lambda cloud: cloud.call(method, path, body, **options)
