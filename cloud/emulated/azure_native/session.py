"""A configured azure-native provider: its clients and its identity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import httpx

from emulated.azure_native.arm import RETRY, ArmClient
from emulated.client import DeployerCredential, RestClient, Retry, error_of
from emulated.settings import AzureProviderSettings
from localcloud.core.clouds import Cloud, local_cloud
from plugin import PluginError, Props

_GRAPH_SCOPE: Final = "https://graph.microsoft.com/.default"
# azsecrets, the module behind the delete (`security/keyvault/azsecrets` v1.3).
_VAULT_API_VERSION: Final = "7.5"
# azcore's own defaults: azsecrets is used without options.
_VAULT_RETRY: Final = Retry(
    statuses=frozenset({408, 429, 500, 502, 503, 504}), delay=lambda number: min((2**number - 1) * 0.8, 60.0), limit=3
)


@dataclass(frozen=True)
class ArmSession:
    """The clients that every call of a configured provider uses."""

    cloud: Cloud
    subscription_id: str
    sign_in: DeployerCredential
    arm: ArmClient
    vault: RestClient

    @classmethod
    def open(cls, settings: AzureProviderSettings) -> ArmSession:
        """Create the clients for the local ARM and Key Vault; the first request signs in."""
        environment = settings.environment
        cloud = local_cloud(environment)
        sign_in = DeployerCredential(settings)

        def client(base_url: str, scope: str, retry: Retry) -> RestClient:
            return RestClient(base_url, scope, sign_in, ca_file=environment.ca_file, retry=retry)

        return cls(
            cloud=cloud,
            subscription_id=settings.subscription_id,
            sign_in=sign_in,
            arm=ArmClient(client(cloud.arm_endpoint, cloud.arm_scope, RETRY)),
            vault=client(environment.key_vault_endpoint, cloud.vault_scope, _VAULT_RETRY),
        )

    def delete_from_vault(self, vault: str, collection: str, name: str) -> None:
        """Delete a secret or key at the vault's own endpoint, if it exists. Needs a data-plane role."""
        _, headers = self.cloud.vault_request(vault)
        response = self.vault.request(
            "DELETE", f"/{collection}/{name}", params={"api-version": _VAULT_API_VERSION}, headers=headers
        )
        if response.status_code not in {200, 404}:
            raise PluginError(_response_error(response, f"{self.cloud.vault_uri(vault)}/{collection}/{name}"))

    def client_config(self) -> Props:
        """`getClientConfig`: from the claims of a Graph token (`provider/pkg/provider/auth_getclientconfig.go`)."""
        claims = self.sign_in.claims(_GRAPH_SCOPE)
        return {
            "clientId": claims["appid"],
            "objectId": claims["oid"],
            "subscriptionId": self.subscription_id,
            "tenantId": claims["tid"],
        }

    def client_token(self, endpoint: str) -> Props:
        """`getClientToken`: a token for the endpoint, by default ARM's."""
        return {"token": self.sign_in.token(f"{endpoint or 'https://management.azure.com/'}/.default")}


OpenSession = Callable[[], ArmSession]


def _response_error(response: httpx.Response, url: str) -> str:
    """The message of azcore's ResponseError."""
    rule = "-" * 80
    status = f"{response.status_code} {response.reason_phrase}"
    code = error_of(response)[0] or "UNAVAILABLE"
    return (
        f"DELETE {url}\n{rule}\nRESPONSE {response.status_code}: {status}\nERROR CODE: {code}\n{rule}\n{response.text}"
    )
