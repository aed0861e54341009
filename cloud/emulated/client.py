"""Signed-in HTTP for the emulated plugins, with the retries of the clients inside the real ones."""

from __future__ import annotations

import errno
import itertools
import os
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import httpx
import jwt
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError
from azure.identity import CertificateCredential, ClientAssertionCredential

from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE, LOCAL_TENANT_ID, LocalEnvironment
from plugin import UNKNOWN, Checked, CheckFailure, PluginError, Props, Provider, Resource, Value, pause, unwrap

# Provider input, and the variable that the real providers read without it.
_VARIABLES: Final[Mapping[str, str]] = {
    "tenantId": "ARM_TENANT_ID",
    "clientId": "ARM_CLIENT_ID",
    "clientCertificatePath": "ARM_CLIENT_CERTIFICATE_PATH",
    "oidcTokenFilePath": "ARM_OIDC_TOKEN_FILE_PATH",
    "subscriptionId": "ARM_SUBSCRIPTION_ID",
}


@dataclass(frozen=True)
class AzureProviderSettings:
    """The settings of a configured provider: the local cloud's endpoints and the deployer's credential.

    `secret_file` has the certificate with its key; if `is_token`, the token of a federated credential's issuer.
    """

    environment: LocalEnvironment
    tenant_id: str
    client_id: str
    secret_file: Path
    is_token: bool
    subscription_id: str

    @classmethod
    def load(cls, plugin: str, inputs: Props, environ: Mapping[str, str] = os.environ) -> AzureProviderSettings:
        """The settings in inputs and environment; raises PluginError for a stack that is not the local cloud's."""
        if problem := _refusal(plugin, inputs, environ):
            raise PluginError(problem)
        try:
            environment = LocalEnvironment.from_file(Path(environ[LOCAL_ENVIRONMENT_VARIABLE]))
        except (OSError, ValueError) as error:
            raise PluginError(
                f"the emulated {plugin} plugin cannot read the local cloud's record, {error}. Start the local cloud "
                f"(`.venv/bin/idstack local start`) and let {LOCAL_ENVIRONMENT_VARIABLE} name its environment.json."
            ) from None
        # A certificate comes first, as in the real providers.
        is_token = environ.get("ARM_USE_OIDC") == "true" and not _setting("clientCertificatePath", inputs, environ)
        file = "oidcTokenFilePath" if is_token else "clientCertificatePath"
        return cls(
            environment=environment,
            tenant_id=LOCAL_TENANT_ID,
            client_id=_required(plugin, "clientId", inputs, environ),
            secret_file=Path(_required(plugin, file, inputs, environ)),
            is_token=is_token,
            subscription_id=str(_setting("subscriptionId", inputs, environ) or environment.subscription_id),
        )


_Session = TypeVar("_Session")


class AzureProvider(Provider, Generic[_Session]):
    """A provider that serves the local cloud's tenant alone; `configure` opens the session of its resources."""

    _resources: Mapping[str, Resource]
    _session: _Session | None = None

    def check_config(self, urn: str, old: Props | None, new: Props) -> Checked:
        """A tenant that a preview does not know yet is left to `configure`."""
        problem = _refusal(self.name, new, os.environ)
        # Without a property name the engine prints the reason alone, not the input's value.
        return Checked(new, (CheckFailure("", problem),) if problem else ())

    def resource(self, type_token: str) -> Resource:
        if type_token not in self._resources:
            raise self.not_emulated("resource type", type_token, self._resources)
        return self._resources[type_token]

    def not_emulated(self, kind: str, token: str, known: Iterable[str]) -> PluginError:
        """The refusal of a resource type or function (`kind`) that is not among the `known` ones."""
        return PluginError(
            f'the emulated {self.name} plugin does not have the {kind} "{token}". The local cloud emulates: '
            f"{', '.join(sorted(known))}"
        )

    def _open_session(self) -> _Session:
        if self._session is None:
            raise PluginError(f"the {self.name} provider is not configured")
        return self._session


def _refusal(plugin: str, inputs: Props, environ: Mapping[str, str]) -> str | None:
    """Why this provider is not served and how to fix it; None if it is the local cloud's."""
    tenant = _setting("tenantId", inputs, environ)
    if tenant is not UNKNOWN and tenant != LOCAL_TENANT_ID:
        problem = f"has the tenant {tenant}" if tenant else "names no tenant"
        return (
            f"this provider {problem}, but the {plugin} plugin in this PULUMI_HOME is emulated and serves only the "
            f"local cloud's tenant {LOCAL_TENANT_ID}. Nothing was changed. For a stack on Azure run with a PULUMI_HOME "
            "of your own, so that the engine takes the real plugin (`.venv/bin/idstack up --stack <name>` does); "
            f"for the local stack set tenantId to {LOCAL_TENANT_ID}."
        )
    if not environ.get(LOCAL_ENVIRONMENT_VARIABLE):
        return (
            f"the emulated {plugin} plugin does not know where the local cloud answers, because the variable "
            f"{LOCAL_ENVIRONMENT_VARIABLE} is not set. Nothing was changed. Run `.venv/bin/idstack up`, or set it "
            "to the path of the local cloud's environment.json."
        )
    return None


def _required(plugin: str, name: str, inputs: Props, environ: Mapping[str, str]) -> str:
    value = _setting(name, inputs, environ)
    if not isinstance(value, str) or not value:
        raise PluginError(
            f"the emulated {plugin} plugin signs in with a client certificate or a token and was given no {name}: "
            f"set it on the provider or in {_VARIABLES[name]}."
        )
    return value


def _setting(name: str, inputs: Props, environ: Mapping[str, str]) -> Value:
    return unwrap(inputs.get(name)) or environ.get(_VARIABLES[name], "")


_TIMEOUT: Final = httpx.Timeout(60.0)
# In errors of connections: no listener, or the certificate is not to be trusted.
_NOT_AGAIN: Final = (f"[Errno {errno.ECONNREFUSED}]", "CERTIFICATE")


class RefusalError(PluginError):
    """An error answer of a service: HTTP status, error code and message as the service sent them."""

    def __init__(self, status: int, code: str, message: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Retry:
    """When the client itself retries.

    Attributes:
        statuses: HTTP statuses that are retried for every request.
        delay: seconds before the n-th retry (from 1), unless the answer carries `Retry-After`.
        limit: the maximum of retries.
    """

    statuses: frozenset[int]
    delay: Callable[[int], float]
    limit: int

    def wait(self, number: int, response: httpx.Response) -> float:
        """Seconds before retry `number`: what the service asks for, else the client's own schedule."""
        asked = response.headers.get("Retry-After", "")
        return float(asked) if asked.isdigit() else self.delay(number)


def _ended_at_once(error: httpx.TransportError) -> bool:
    """Whether a connection was taken and ended before a request could be sent; no certificate was refused."""
    return isinstance(error, httpx.ConnectError) and not any(phrase in str(error) for phrase in _NOT_AGAIN)


def never(_: httpx.Response) -> bool:
    """No further reason to retry."""
    return False


class DeployerCredential:
    """The deployer's sign-in at the local Entra; tokens are cached until they expire."""

    def __init__(self, settings: AzureProviderSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()

    @cached_property
    def _credential(self) -> TokenCredential:
        environment, file = self._settings.environment, self._settings.secret_file
        client = (self._settings.tenant_id, self._settings.client_id)
        options: dict[str, Any] = {
            "authority": environment.authority_host,
            "disable_instance_discovery": True,
            "connection_verify": environment.ca_file,
        }
        if self._settings.is_token:
            return ClientAssertionCredential(*client, file.read_text, **options)
        try:
            return CertificateCredential(*client, str(file), **options)
        except (OSError, ValueError) as error:
            raise PluginError(f"clientCertificatePath {file}: {error}") from None

    def token(self, scope: str) -> str:
        """A bearer token; raises PluginError with Entra's own refusal (`AADSTS...`)."""
        # One at a time: twenty threads of a first preview would otherwise all sign in.
        with self._lock:
            try:
                return self._credential.get_token(scope).token
            except AzureError as error:
                raise PluginError(f"signing in as {self._settings.client_id}: {error.message}") from None

    def claims(self, scope: str) -> dict[str, Any]:
        """The claims of a token for `scope`, unverified: the provider's own object id and tenant."""
        claims: dict[str, Any] = jwt.decode(self.token(scope), options={"verify_signature": False})
        return claims


class RestClient:
    """One service: its base address, the scope of its tokens and its client's retries. Safe for many threads."""

    def __init__(
        self,
        base_url: str,
        scope: str,
        sign_in: DeployerCredential,
        *,
        ca_file: str,
        retry: Retry,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        self.base_url = base_url
        self._scope = scope
        self._sign_in = sign_in
        self._retry = retry
        self._sleep = sleep
        # The local cloud is on loopback: a proxy of the environment must not get in between.
        self._http = httpx.Client(
            base_url=base_url, verify=ssl.create_default_context(cafile=ca_file), trust_env=False, timeout=_TIMEOUT
        )

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        also_retry: Callable[[httpx.Response], bool] = never,
    ) -> httpx.Response:
        """Send a request, retried as the real client would; the last answer comes back whatever its status.

        Raises PluginError when nothing answers: unlike a real client this does not wait for a local cloud that is down.
        One that ends a connection before the request is there does run, and is asked again.
        """
        for number in itertools.count(1):
            authorization = {"Authorization": f"Bearer {self._sign_in.token(self._scope)}"}
            try:
                response = self._http.request(
                    method, path, params=params, json=body, headers={**authorization, **(headers or {})}
                )
            except httpx.TransportError as error:
                if _ended_at_once(error) and number <= self._retry.limit:
                    self._sleep(self._retry.delay(number))
                    continue
                # One that answers in part, or with a certificate that is not to be trusted, does run.
                runs = isinstance(error, httpx.ReadError | httpx.RemoteProtocolError) or "CERTIFICATE" in str(error)
                what = "the answer cannot be taken" if runs else "the local cloud does not answer"
                help_ = "" if runs else ". `.venv/bin/idstack local start` starts it"
                raise PluginError(f"{method} {self.base_url}{path}: {what} ({error}){help_}") from None
            retried = response.status_code in self._retry.statuses or also_retry(response)
            if not retried or number > self._retry.limit:
                return response
            self._sleep(self._retry.wait(number, response))
        raise AssertionError("the loop returns")


def error_of(response: httpx.Response) -> tuple[str, str]:
    """`error.code` and `error.message` of an answer in Azure's shape; ("", the body) for any other."""
    try:
        error = response.json()["error"]
        return str(error.get("code", "")), str(error["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", response.text
