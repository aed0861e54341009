"""The Azure provider of the Secrets Store CSI driver: a token from IMDS, secrets, keys and certificates from Key Vault.

The calls and their order are the real provider's: azidentity's ManagedIdentityCredential, azsecrets with its challenge.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from http import HTTPStatus
from typing import Any, Final

import httpx
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic.alias_generators import to_camel

from localcloud.core.certificates import parse as parse_material
from localcloud.core.clouds import Cloud
from localcloud.kubelet.atomic_writer import File

# The parameters of a SecretProviderClass, read as strictly as the Azure provider reads them.
#
# Words and rules: Azure/secrets-store-csi-driver-provider-azure `pkg/provider/{provider,validate}.go`,
# `pkg/provider/types/parameters.go`.


# strconv.ParseBool
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TYPES: Final = frozenset({"secret", "key", "cert"})
_ENCODINGS: Final = ("hex", "base64", "utf-8")
# go-autorest `azure/environments.go`; AzureStackCloud needs an environment file of its own.
_CLOUDS: Final = frozenset(
    {
        "AZURECHINACLOUD",
        "AZUREGERMANCLOUD",
        "AZURECLOUD",
        "AZUREPUBLICCLOUD",
        "AZUREUSGOVERNMENT",
        "AZUREUSGOVERNMENTCLOUD",
    }
)


class ProviderError(Exception):
    """A mount the provider refuses or fails; the message is the provider's."""


@dataclass(frozen=True)
class VaultObject:
    """One entry of `objects`; field names are the provider's in snake case, every value is a string."""

    object_name: str = ""
    object_alias: str = ""
    object_version: str = ""
    object_version_history: str = ""
    object_type: str = ""
    object_format: str = ""
    object_encoding: str = ""
    file_permission: str = ""

    @property
    def file_name(self) -> str:
        return self.object_alias or self.object_name

    @property
    def uid(self) -> str:
        """The id in a SecretProviderClassPodStatus."""
        return f"{self.object_type}/{self.object_name}"

    def mode(self, default: int) -> int:
        """Permission bits of the file; `default` if the object gives none, and no bit if its value is not octal.

        The provider drops that error (Azure/secrets-store-csi-driver-provider-azure v1.8.2 `pkg/provider/provider.go`).
        """
        if not self.file_permission:
            return default
        return int(self.file_permission, 8) if re.fullmatch(r"[0-7]+", self.file_permission) else 0

    def failure(self, cause: object) -> ProviderError:
        """`cause` as the failure of this object."""
        return ProviderError(
            f"failed to get objectType:{self.object_type}, objectName:{self.object_name}, "
            f"objectVersion:{self.object_version}: {cause}"
        )

    def content(self, value: str) -> bytes:
        """The file's bytes for the vault's value: decoded if the object names an encoding."""
        if self.object_type.lower() != "secret":
            return value.encode()
        try:
            match self.object_encoding.lower():
                case "base64":
                    return _standard_base64(value.encode())
                case "hex":  # Go's hex accepts no blanks and no line ends
                    return binascii.unhexlify(value)
        except ValueError as error:
            raise ProviderError(f"{self.object_encoding} decoding of {self.object_name} failed: {error}") from None
        return value.encode()


@dataclass(frozen=True)
class MountRequest:
    """The valid parameters of a mount: vault, client id of the identity (empty for the node's own), objects."""

    vault: str
    client_id: str
    objects: tuple[VaultObject, ...]


def parse(parameters: Mapping[str, str]) -> MountRequest:
    """Parse a SecretProviderClass's parameters; raises `ProviderError` for the first problem, as the provider does."""
    value = {name: text.strip() for name, text in parameters.items()}
    modes = [
        mode
        for mode in ("usePodIdentity", "useVMManagedIdentity", "useAzureTokenProxy")
        if _flag(mode, value.get(mode, ""))
    ]
    if len(modes) > 1:
        raise ProviderError(
            "only one identity mode can be enabled at a time: "
            "usePodIdentity, useVMManagedIdentity, or useAzureTokenProxy"
        )
    if not value.get("keyvaultName"):
        raise ProviderError("keyvaultName is not provided")
    # With a VM identity the value is not used further, but an empty one is refused.
    if not (value.get("tenantID") or value.get("tenantId")):
        raise ProviderError("tenantId is not provided")
    cloud = value.get("cloudName", "")
    if cloud and cloud.upper() not in _CLOUDS:
        raise ProviderError(
            f"cloudName {cloud} is not valid, error: autorest/azure: There is no cloud environment matching the name "
            f'"{cloud.upper()}"'
        )
    if modes != ["useVMManagedIdentity"]:
        raise _other_identity(modes, value)
    objects = _objects(value.get("objects", ""))
    if objects:
        _check_vault(value["keyvaultName"])
    return MountRequest(value["keyvaultName"], value.get("userAssignedIdentityID", ""), objects)


def _standard_base64(data: bytes) -> bytes:
    """Go's base64.StdEncoding, which has no line ends; raises binascii.Error."""
    digits = data.translate(None, b"\r\n")
    # Python's strict mode takes one padding character too many, and whole quanta of them behind the last full one.
    if len(digits) % 4 or digits.endswith(b"==="):
        raise binascii.Error("incorrect padding")
    return binascii.a2b_base64(digits, strict_mode=True)


def _flag(name: str, text: str) -> bool:
    if text in _TRUE:
        return True
    if not text or text in _FALSE:
        return False
    raise ProviderError(f'failed to parse {name} flag, error: strconv.ParseBool: parsing "{text}": invalid syntax')


def _other_identity(modes: list[str], value: Mapping[str, str]) -> ProviderError:
    """A local node has a VM identity only: every other kind fails as on a node that lacks it."""
    if modes:
        return ProviderError(
            f"failed to build auth config: this node has neither pod identities nor a token proxy ({modes[0]})"
        )
    if value.get("clientID"):
        return ProviderError("failed to parse workload identity tokens, error: service account tokens not found")
    return ProviderError(
        "failed to build auth config for mode None: failed to get credentials, nodePublishSecretRef secret is not set"
    )


def _objects(text: str) -> tuple[VaultObject, ...]:
    if not text:
        raise ProviderError("objects is not set")
    try:
        document = yaml.load(text, Loader=_GoLoader)  # noqa: S506
    except yaml.YAMLError as error:
        raise ProviderError(f"failed to yaml unmarshal objects, error: {error}") from None
    array = _member(document, "array")
    if not isinstance(array, list) or not all(isinstance(entry, str | None) for entry in array):
        raise ProviderError("failed to yaml unmarshal objects, error: yaml: cannot unmarshal into types.StringArray")
    return tuple(_object(entry or "", index) for index, entry in enumerate(array))


class _GoLoader(yaml.BaseLoader):
    """Reads YAML as yaml.v3 reads it into structs of strings: text, lists and maps, every scalar as it is.

    `null` is the zero value, and a key that is defined twice is refused, as yaml.v3 does (`decode.go`).
    """

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        is_null = isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NULLS
        return None if is_null else super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.value in lines and isinstance(key, yaml.ScalarNode):
                raise yaml.YAMLError(
                    f'yaml: unmarshal errors:\n  line {line}: mapping key "{key.value}" already defined at line '
                    f"{lines[key.value]}"
                )
            lines[str(key.value)] = line
        return super().construct_mapping(node, deep=deep)


def _member(document: object, name: str) -> object:
    """A list of a document: empty if it has none, None if the document is not a map."""
    if document is None:
        return []
    value = document.get(name) if isinstance(document, dict) else ""
    return [] if value is None else value


def _object(text: str, index: int) -> VaultObject:
    failed = f"unmarshal failed for keyVaultObjects at index {index}, error:"
    try:
        document = yaml.load(text, Loader=_GoLoader)  # noqa: S506
    except yaml.YAMLError as error:
        raise ProviderError(f"{failed} {error}") from None
    document = {} if document is None else document
    if not isinstance(document, dict) or not all(isinstance(value, str | None) for value in document.values()):
        raise ProviderError(f"{failed} yaml: cannot unmarshal into types.KeyVaultObject")
    known = {to_camel(field.name): field.name for field in fields(VaultObject)}
    item = VaultObject(**{known[name]: (value or "").strip() for name, value in document.items() if name in known})
    _validate(item)
    return item


def _validate(item: VaultObject) -> None:
    if item.object_format and item.object_format.lower() not in {"pem", "pfx"}:
        raise item.failure(f"invalid objectFormat: {item.object_format}, should be PEM or PFX")
    if item.object_encoding:
        if item.object_type != "secret":
            raise item.failure("objectEncoding only supported for objectType: secret")
        if item.object_encoding.lower() not in _ENCODINGS:
            raise item.failure(f"invalid objectEncoding: {item.object_encoding}, should be hex, base64 or utf-8")
    if not item.file_name:
        raise item.failure("file name must not be empty")
    if item.file_name.startswith("/"):
        raise item.failure("file name must be a relative path")
    if ".." in item.file_name:
        raise item.failure("file name must not contain '..'")
    if item.object_type not in _TYPES:
        raise item.failure("Invalid vaultObjectTypes. Should be secret, key, or cert")
    if item.object_version_history not in {"", "0", "1"}:
        raise item.failure(f"objectVersionHistory {item.object_version_history}: the local kubelet mounts one version")


def _check_vault(name: str) -> None:
    if not 3 <= len(name) <= 24:
        raise ProviderError(f'failed to get vault: Invalid vault name: "{name}", must be between 3 and 24 chars')
    if not re.fullmatch(r"[-A-Za-z0-9]+", name):
        raise ProviderError(f'failed to get vault: Invalid vault name: "{name}", must match [-a-zA-Z0-9]{{3,24}}')


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
                certificate = x509.load_der_x509_certificate(base64.b64decode(bundle["cer"]))
                return certificate.public_bytes(Encoding.PEM).decode(), bundle["id"].rsplit("/", 1)[-1]
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
