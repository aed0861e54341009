"""Tokens of a pipeline's own issuer: GitHub Actions or Azure DevOps.

Sources: docs.github.com, "OpenID Connect reference"; learn.microsoft.com/rest/api/azure/devops, "Oidctoken - Create";
go-azure-sdk's `sdk/auth/ado_pipeline_oidc_authorizer.go`, azure-native's `auth_azidentity.go`.

`azure.identity.AzurePipelinesCredential` (1.27) takes the address from SYSTEM_OIDCREQUESTURI alone, not from the
variables that the providers read, appends `?` to one that has parameters, and lets a page of HTML end in a
JSONDecodeError.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx

from identity.azure.errors import LoginRefusedError, SignInRefusedError
from identity.credentials.backoff import Backoff

AUDIENCE: Final = "api://AzureADTokenExchange"
# In the order in which azuread and azurerm look for them. azure-native reads those of GitHub alone.
_URLS: Final = ("ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL", "SYSTEM_OIDCREQUESTURI")
_BEARERS: Final = ("ARM_OIDC_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "SYSTEM_ACCESSTOKEN")
_CONNECTIONS: Final = ("ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID", "ARM_OIDC_AZURE_SERVICE_CONNECTION_ID")
_ADO_API: Final = "7.1"
_TRIES: Final = 4
_TIMEOUT: Final = 15.0


@dataclass(frozen=True)
class PipelineToken:
    """The token endpoint of a pipeline; `connection_id` is an Azure DevOps service connection, None for GitHub."""

    url: httpx.URL
    bearer: str = field(repr=False)
    connection_id: str | None
    audience: str = AUDIENCE
    sleep: Callable[[float], object] = time.sleep

    def fetched(self) -> str:
        """A token; raises SignInRefusedError if the endpoint returns none after a few attempts."""
        backoff = Backoff(0.5, 4)
        for left in reversed(range(_TRIES)):
            try:
                answer = self._ask()
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            except OSError as error:
                raise self._refused(f"SSL_CERT_FILE cannot be used: {error}") from None
            else:
                if answer.is_success:
                    return self._token(answer)
                reason = f"it answers {answer.status_code}"
                if answer.status_code != httpx.codes.TOO_MANY_REQUESTS and not answer.is_server_error:
                    raise self._refused(f"{reason}: {' '.join(answer.text.split())[:200]}")
            if left:
                self.sleep(backoff.next())
        raise self._refused(f"{reason}, {_TRIES} times")

    def _ask(self) -> httpx.Response:
        """Send the request; parameters in the address stay."""
        headers = {"Authorization": f"Bearer {self.bearer}", "Accept": "application/json"}
        if self.connection_id is None:
            asked = self.url.copy_set_param("audience", self.audience)
            return httpx.get(asked, headers=headers, timeout=_TIMEOUT)
        defaults = {"api-version": _ADO_API, "serviceConnectionId": self.connection_id}
        missing = {name: value for name, value in defaults.items() if not self.url.params.get(name)}
        headers["Content-Type"] = "application/json"
        return httpx.post(self.url.copy_merge_params(missing), headers=headers, timeout=_TIMEOUT)

    def _token(self, answer: httpx.Response) -> str:
        try:
            token = answer.json()["value" if self.connection_id is None else "oidcToken"]
        except (ValueError, KeyError, TypeError):
            token = None
        if not isinstance(token, str) or not token:
            raise self._refused("its answer has no token")
        return token

    def _refused(self, reason: str) -> SignInRefusedError:
        what = "Azure DevOps" if self.connection_id else "GitHub"
        return SignInRefusedError(
            f"the OIDC endpoint of {what} at {self.url.host} gives no token ({reason.rstrip('.')}); run the job again, "
            "and look at the status page if it goes on"
        )


def of(variables: Mapping[str, str]) -> PipelineToken:
    """The endpoint that the variables name, all of them set; raises LoginRefusedError."""
    url = next((name for name in _URLS if name in variables), None)
    bearer = next((name for name in _BEARERS if name in variables), None)
    connection = next((variables[name] for name in _CONNECTIONS if name in variables), None)
    if url is None or bearer is None:
        raise LoginRefusedError(
            "ARM_USE_OIDC is true, and nothing gives a token: set ARM_OIDC_TOKEN or ARM_OIDC_TOKEN_FILE_PATH, give a "
            f"job of GitHub `permissions: id-token: write`, or a task of Azure DevOps {_URLS[-1]}, {_BEARERS[-1]} and "
            f"{_CONNECTIONS[0]}"
        )
    if url == _URLS[-1] and connection is None:
        raise LoginRefusedError(f"{url} is set without {_CONNECTIONS[0]}; set it to the id of the service connection")
    try:
        address = httpx.URL(variables[url])
    except httpx.InvalidURL:
        address = httpx.URL("")
    if address.scheme not in ("https", "http") or not address.host:
        raise LoginRefusedError(f'{url} is "{variables[url]}"; accepted is a URL with https')
    return PipelineToken(address, variables[bearer], connection, variables.get("ARM_OIDC_AUDIENCE", AUDIENCE))
