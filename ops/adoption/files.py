"""The files in which HyperShift's scripts and its CLI name the identities of a hosted cluster.

Paths are inside openshift/hypershift at 3ee9615. `contrib/managed-azure/setup_MIv3_kv.sh` writes the control plane's,
`setup_dataplane_identities.sh` the data plane's with unquoted client ids: HyperShift reads both as YAML, and so does
this module. `hypershift create iam azure` writes `{"disk": {"clientID": ...}}` for the data plane's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from identity import yaml_text
from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.hypershift import KIND
from identity.naming import parse_arm_id
from identity.settings.schema.hosted_clusters import DEFAULT_ENCODING
from identity.settings.schema.problems import Place, value_at
from ops.stack.errors import CommandError, message, why_unreadable

_VAULT: Final = "managedIdentitiesKeyVault"
_CLIENT_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SECRET_NAME: Final = re.compile(r"[0-9a-zA-Z-]{1,127}")
# `hypershift create iam azure` names an identity by its field of the HostedCluster API without this suffix.
_FIELD_ENDS: Final = "MSIClientID"


@dataclass(frozen=True)
class ScriptIdentity:
    """One control-plane identity: an application, and the Key Vault secret with its credential document.

    `certificate` is the vault's certificate in the document, None if the file names none.
    """

    client_id: str
    secret_name: str
    object_encoding: str
    certificate: str | None = None


@dataclass(frozen=True)
class ControlPlaneFile:
    """The identities by field of the HostedCluster API, `others`, and the name of their vault."""

    identities: Mapping[str, ScriptIdentity]
    others: Mapping[str, ScriptIdentity]
    vault: str | None


NO_CERTIFICATES: Final = ControlPlaneFile({}, {}, None)


def control_plane(path: Path, vault: str | None = None) -> ControlPlaneFile:
    """Read the file of the control plane (`cp-output.json`); `vault` takes the place of the vault that it names.

    Raises CommandError with every problem in it, and if nothing names the vault.
    """
    problems: list[str] = []
    mapping = _mapping(path, problems)
    identities = {str(name): _identity(name, value, problems) for name, value in mapping.items() if name != _VAULT}
    fields = {row.field for row in CONTROL_PLANE}
    if not problems and not fields & identities.keys():
        problems.append(f"found no control-plane identity; accepted: one or more of {', '.join(sorted(fields))}")
    _refuse(path, problems)
    vault = vault or _text(mapping.get(_VAULT), "name")
    if vault is None:
        raise CommandError(f"{path} names no vault; give its name with --vault")
    return ControlPlaneFile(
        identities={name: identity for name, identity in identities.items() if name in fields},
        others={name: identity for name, identity in identities.items() if name not in fields},
        vault=vault,
    )


def data_plane(path: Path) -> Mapping[str, str]:
    """Client ids by field of the HostedCluster API (`dp-output.json`); raises CommandError with every problem in it."""
    keys = {row.field: (row.field, row.field.removesuffix(_FIELD_ENDS)) for row in DATA_PLANE}
    return _client_ids(path, keys, "script", f"data-plane identity; accepted: one or more of {', '.join(keys)}")


def workload_identities(path: Path) -> Mapping[str, str]:
    """Client ids by field of the HostedCluster API (`workload-identities.json`).

    `hypershift create iam azure` writes identities that the API has elsewhere as `<field>ClientID`
    (`cmd/infra/azure/identities.go:361`). Raises CommandError with every problem in the file.
    """
    suffixed = [f"{row.field}ClientID" for row in CONTROL_PLANE if row.workload and row.workload.path]
    keys = {
        row.field: (f"{row.field}ClientID" if row.workload.path else row.field,)
        for row in CONTROL_PLANE
        if row.workload
    }
    fields = f"the fields of workloadIdentities in the HostedCluster API and {', '.join(suffixed)}"
    return _client_ids(path, keys, "command", f"identity; accepted: {fields}")


def _client_ids(path: Path, keys: Mapping[str, Sequence[str]], writer: str, nothing: str) -> Mapping[str, str]:
    """The client ids by field, of the first or last of a field's `keys`; `nothing` is the problem without any."""
    problems: list[str] = []
    mapping = _mapping(path, problems)
    client_ids: dict[str, str] = {}
    for field, names in keys.items():
        key = next((name for name in names if name in mapping), names[-1])
        value = mapping.get(key)
        client_id = value if isinstance(value, str) else _text(value, "clientID")
        if client_id is not None and _CLIENT_ID.fullmatch(client_id):
            client_ids[field] = client_id.lower()
        elif value is not None:
            problems.append(f"{key}: found no client id; accepted: a UUID, as the {writer} writes it")
    if not problems and not client_ids:
        problems.append(f"found no {nothing}")
    _refuse(path, problems)
    return client_ids


def _identity(name: str, value: Any, problems: list[str]) -> ScriptIdentity:
    client_id, secret_name = _text(value, "clientID") or "", _text(value, "credentialsSecretName") or ""
    if not _CLIENT_ID.fullmatch(client_id):
        problems.append(f"{name}.clientID: found no client id; accepted: a UUID, as the script writes it")
    if not _SECRET_NAME.fullmatch(secret_name):
        problems.append(
            f"{name}.credentialsSecretName: found no name of a secret; accepted: 1-127 letters, digits and hyphens"
        )
    encoding = _text(value, "objectEncoding") or DEFAULT_ENCODING
    return ScriptIdentity(client_id.lower(), secret_name, encoding, _text(value, "certificateName"))


def _mapping(path: Path, problems: list[str]) -> Mapping[str, Any]:
    document = _read(path, _parse_strings, "the file that the script wrote")
    if document is None:
        problems.append("found no object; accepted: what the script wrote, a JSON object")
    return document or {}


def _read(path: Path, parse: Callable[[str], Any], accepted: str) -> Mapping[str, Any] | None:
    """The object in a file; None if it has another value. Raises CommandError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read ({why_unreadable(error)}); use {accepted}") from None
    try:
        document = parse(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return document if isinstance(document, Mapping) else None


def _parse_strings(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # Strings only: an unquoted client id must not become a number.
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506


def _text(document: Any, *place: str) -> str | None:
    """The string at a place, None for none."""
    value = value_at(document, place)
    return value if isinstance(value, str) else None


def _refuse(path: Path, problems: list[str]) -> None:
    if problems:
        raise CommandError(f"{path} is not what HyperShift's scripts write:", *(f"- {problem}" for problem in problems))


_PLATFORM: Final = ("spec", "platform", "azure")
_IDENTITIES: Final = (*_PLATFORM, "azureAuthenticationConfig", "managedIdentities")
_KMS: Final = ("spec", "secretEncryption", "kms", "azure")
_OF_PLATFORM: Final = ("location", "resourceGroup", "vnetID", "subnetID", "securityGroupID", "topology")
_OF_KEY: Final = ("keyVaultName", "keyName", "keyVersion")
# Keys of a hosted cluster in the configuration, by their place in the HostedCluster.
_SAME: Final[Mapping[Place, tuple[str, ...]]] = {
    ("namespace",): ("metadata", "namespace"),
    ("infraID",): ("spec", "infraID"),
    ("issuerURL",): ("spec", "issuerURL"),
    **{("dns", name): ("spec", "dns", name) for name in ("baseDomain", "publicZoneID", "privateZoneID")},
    **{(name,): (*_PLATFORM, name) for name in _OF_PLATFORM},
    **{("kms", key, name): (*_KMS, key, name) for key in ("activeKey", "backupKey") for name in _OF_KEY},
    ("kms", "keyVaultType"): (*_KMS, "keyVaultType"),
}


def read_manifest(
    path: Path, cluster: str, named: Mapping[tuple[str, ...], str], subscription: str
) -> dict[Place, str]:
    """Values of the cluster's entry in the configuration, by place in it.

    `named` has the values of the identity files, by place in the HostedCluster. Raises CommandError for a file without
    a HostedCluster, and for one with another name, another subscription, or other client ids.
    """
    document = _read(path, yaml_text.load, f"a {KIND} as YAML")
    if document is None or document.get("kind") != KIND:
        raise CommandError(message("files.no-hosted-cluster", path=path, cluster=cluster))
    expected = {("metadata", "name"): cluster, (*_PLATFORM, "subscriptionID"): subscription, **named}
    if problems := [
        f"- {'.'.join(place)}: found {actual}; accepted: {value}"
        for place, value in expected.items()
        if (actual := _text(document, *place)) is not None and actual.lower() != value.lower()
    ]:
        raise CommandError(f"{path} is not the HostedCluster of these files:", *problems)
    values = {place: value for place, source in _SAME.items() if (value := _text(document, *source))}
    if zone := values.get(("dns", "publicZoneID")):
        # The configuration itself refuses an invalid zone id.
        with suppress(ValueError):
            values["dnsZoneResourceGroup",] = parse_arm_id(zone).resource_group
    return values


def named_by_scripts(control_plane: ControlPlaneFile, data_plane: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """The values of the scripts' files, by place in the HostedCluster."""
    named: dict[tuple[str, ...], str] = {
        (*_IDENTITIES, "dataPlane", field): client_id for field, client_id in data_plane.items()
    }
    for field, identity in control_plane.identities.items():
        named[*_IDENTITIES, "controlPlane", field, "clientID"] = identity.client_id
        named[*_IDENTITIES, "controlPlane", field, "credentialsSecretName"] = identity.secret_name
    return named


def named_by_iam(workload: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """The values of `workload-identities.json`, by place in the HostedCluster."""
    rows = {row.field: row for row in CONTROL_PLANE}
    return {("spec", *rows[field].workload_path, "clientID"): client_id for field, client_id in workload.items()}
