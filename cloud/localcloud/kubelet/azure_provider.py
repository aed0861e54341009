"""The Azure provider of the Secrets Store CSI driver: a token from IMDS, secrets, keys and certificates from Key Vault.

The calls and their order are the real provider's: azidentity's ManagedIdentityCredential, azsecrets with its challenge.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from localcloud.core.certificates import parse as parse_material
from localcloud.core.clouds import Cloud
from localcloud.kubelet.atomic_writer import File
from localcloud.kubelet.vault_objects import MountRequest, ProviderError, VaultObject, parse

_IMDS_VERSION: Final = "2018-02-01"
_VAULT_VERSION: Final = "7.4"
_PLURALS: Final = {"secret": "secrets", "key": "keys", "cert": "certificates"}
_PEM: Final = "application/x-pem-file"
_PKCS12: Final = "application/x-pkcs12"
_DEFAULT_MODE: Final = 0o644
_RULE: Final = "-" * 80
# As azidentity shows them, in place of the local cloud's own address.
_IMDS_TOKEN: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
_HELP: Final = "To troubleshoot, visit https://aka.ms/azsdk/go/identity/troubleshoot#managed-id"


@dataclass(frozen=True)
class MountedObject:
    """One file of a mount and the vault version it came from."""

    path: str
    file: File
    uid: str
    version: str


class AzureProvider:
    """Fetches the objects of a SecretProviderClass.

    Args:
        cloud: whose vaults are asked.
        imds_endpoint: URL of the node's instance metadata service.
        http: client that trusts the vault's authority.
    """

    def __init__(self, cloud: Cloud, imds_endpoint: str, http: httpx.AsyncClient) -> None:
        self._cloud = cloud
        self._imds = imds_endpoint.rstrip("/")
        self._http = http

    async def mount(self, parameters: Mapping[str, str]) -> list[MountedObject]:
        """The files of a mount. Raises `ProviderError` with the provider's own words."""
        request = parse(parameters)
        files: list[MountedObject] = []
        authorization: str | None = None
        for item in request.objects:
            if authorization is None:
                authorization = f"Bearer {await self._token(request, await self._challenge(request, item), item)}"
            value, version = await self._object(request.vault, item, authorization)
            file = File(item.content(value), item.mode(_DEFAULT_MODE))
            files.append(MountedObject(item.file_name, file, item.uid, version))
        return files

    async def _challenge(self, request: MountRequest, item: VaultObject) -> str:
        """The resource that needs a token, from the vault's answer to a call without one."""
        response = await self._vault_call(request.vault, item, {})
        header = response.headers.get("www-authenticate", "")
        match = re.search(r'resource="([^"]+)"', header)
        if response.status_code != HTTPStatus.UNAUTHORIZED or match is None:
            raise item.failure(_refusal(self._object_url(request.vault, item), response))
        host = httpx.URL(match[1]).host
        if not f".{self._cloud.vault_suffix}".endswith(f".{host}"):
            raise item.failure(f'challenge resource "{host}" doesn\'t match the requested domain')
        return match[1]

    async def _token(self, request: MountRequest, resource: str, item: VaultObject) -> str:
        query = {"api-version": _IMDS_VERSION, "resource": resource}
        if request.client_id:
            query["client_id"] = request.client_id
        url = f"{self._imds}/metadata/identity/oauth2/token"
        try:
            response = await self._http.get(url, params=query, headers={"Metadata": "true"})
        except httpx.HTTPError as error:
            raise item.failure(f"ManagedIdentityCredential: failed to request token: {error}") from None
        if response.is_error:
            raise item.failure(_sign_in_refusal(request, response))
        token: str = response.json()["access_token"]
        return token

    async def _object(self, vault: str, item: VaultObject, authorization: str) -> tuple[str, str]:
        """Content and version of a secret, of a key's public half or of a certificate."""
        response = await self._vault_call(vault, item, {"Authorization": authorization})
        if response.is_error:
            raise item.failure(_refusal(self._object_url(vault, item), response))
        bundle = response.json()
        match item.object_type:
            case "key":
                return _public_key(bundle["key"]), bundle["key"]["kid"].rsplit("/", 1)[-1]
            case "cert":
                return _certificate(bundle["cer"]), bundle["id"].rsplit("/", 1)[-1]
        if bundle.get("value") is None:
            raise ProviderError("secret value is nil")
        if bundle.get("id") is None:
            raise ProviderError("secret id is nil")
        return _content(bundle, item), bundle["id"].rsplit("/", 1)[-1]

    async def _vault_call(self, vault: str, item: VaultObject, headers: Mapping[str, str]) -> httpx.Response:
        base, vault_headers = self._cloud.vault_request(vault)
        # Without a version the path ends in a slash, as azsecrets writes it.
        url = f"{base.rstrip('/')}/{_PLURALS[item.object_type]}/{item.object_name}/{item.object_version}"
        try:
            return await self._http.get(
                url, params={"api-version": _VAULT_VERSION}, headers={**vault_headers, **headers}
            )
        except httpx.HTTPError as error:
            raise item.failure(f'Get "{self._object_url(vault, item)}": {error or type(error).__name__}') from None

    def _object_url(self, vault: str, item: VaultObject) -> str:
        return f"{self._cloud.vault_uri(vault)}/{_PLURALS[item.object_type]}/{item.object_name}/{item.object_version}"


def _content(bundle: Mapping[str, Any], item: VaultObject) -> str:
    """The value of a secret; that of a certificate as PEM, unless PKCS#12 is requested (`provider.go`)."""
    value: str = bundle["value"]
    kind = bundle.get("contentType")
    if not bundle.get("kid") or kind == _PEM or (kind == _PKCS12 and item.object_format.lower() == "pfx"):
        return value
    if kind != _PKCS12:
        raise item.failure(f"failed to get certificate. unknown content type '{kind}'")
    try:
        return parse_material(base64.b64decode(value)).pem().decode()
    except ValueError as error:
        raise item.failure(error) from None


def _public_key(key: Mapping[str, str]) -> str:
    """The public half of a JSON Web Key as PEM."""
    numbers = (int.from_bytes(base64.urlsafe_b64decode(f"{key[name]}==")) for name in ("e", "n"))
    public = rsa.RSAPublicNumbers(*numbers).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _certificate(cer: str) -> str:
    return x509.load_der_x509_certificate(base64.b64decode(cer)).public_bytes(Encoding.PEM).decode()


def _sign_in_refusal(request: MountRequest, response: httpx.Response) -> str:
    """The message of azidentity's `AuthenticationFailedError`; it shows no query."""
    is_unassigned = response.status_code == HTTPStatus.BAD_REQUEST and request.client_id
    why = "the requested identity isn't assigned to this resource" if is_unassigned else ""
    return (
        f"ManagedIdentityCredential authentication failed. {why}\nGET {_IMDS_TOKEN}\n{_RULE}\n"
        f"RESPONSE {_status(response)}\n{_RULE}\n{_indented(response)}\n{_RULE}\n{_HELP}"
    )


def _status(response: httpx.Response) -> str:
    return f"{response.status_code}: {response.status_code} {HTTPStatus(response.status_code).phrase}"


def _indented(response: httpx.Response) -> str:
    try:
        return json.dumps(response.json(), indent=2)
    except ValueError:
        return response.text or "Response contained no body"


def _refusal(url: str, response: httpx.Response) -> str:
    """The message of an `azcore.ResponseError`."""
    try:
        code = response.json()["error"]["code"]
    except (ValueError, KeyError, TypeError):
        code = "UNAVAILABLE"
    return (
        f"GET {url}\n{_RULE}\nRESPONSE {_status(response)}\nERROR CODE: {code}\n{_RULE}\n{_indented(response)}\n{_RULE}"
    )
