"""The parameters of a SecretProviderClass, read as strictly as the Azure provider reads them.

Words and rules: Azure/secrets-store-csi-driver-provider-azure `pkg/provider/{provider,validate}.go`,
`pkg/provider/types/parameters.go`.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import yaml

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
    known = {_camel_case(field.name): field.name for field in fields(VaultObject)}
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


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
