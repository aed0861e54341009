"""The files in which HyperShift's scripts and its CLI name the identities of a hosted cluster.

Paths are inside openshift/hypershift at 3ee9615. `contrib/managed-azure/setup_MIv3_kv.sh` writes the control plane's,
`setup_dataplane_identities.sh` the data plane's, whose client ids have no quotes: HyperShift reads both as YAML, and so
does this module. `hypershift create iam azure` writes `{"disk": {"clientID": ...}}` for the data plane's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.settings.schema.hosted_clusters import DEFAULT_ENCODING
from ops.stack.errors import CommandError, why_unreadable

_VAULT: Final = "managedIdentitiesKeyVault"
_CLIENT_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SECRET_NAME: Final = re.compile(r"[0-9a-zA-Z-]{1,127}")
# A field of the HostedCluster API without it is what `hypershift create iam azure` calls the identity.
_FIELD_ENDS: Final = "MSIClientID"


@dataclass(frozen=True)
class ScriptIdentity:
    """One control-plane identity: an application, and the Key Vault secret with its credential document.

    `certificate` is the vault's certificate of which the document was made, None if the file names none.
    """

    client_id: str
    secret_name: str
    object_encoding: str
    certificate: str | None = None


@dataclass(frozen=True)
class ControlPlaneFile:
    """The identities by field of the HostedCluster API, and those of another purpose; `vault` is None if not named."""

    identities: Mapping[str, ScriptIdentity]
    others: Mapping[str, ScriptIdentity]
    vault: str | None


def control_plane(path: Path) -> ControlPlaneFile:
    """Read the file of the control plane (`cp-output.json`); raises CommandError with every problem in it."""
    problems: list[str] = []
    mapping = _mapping(path, problems)
    identities = {str(name): _identity(name, value, problems) for name, value in mapping.items() if name != _VAULT}
    fields = {row.field for row in CONTROL_PLANE}
    if not problems and not fields & identities.keys():
        problems.append(f"found no control-plane identity; accepted: one or more of {', '.join(sorted(fields))}")
    _refuse(path, problems)
    return ControlPlaneFile(
        identities={name: each for name, each in identities.items() if name in fields},
        others={name: each for name, each in identities.items() if name not in fields},
        vault=_text(mapping.get(_VAULT), "name"),
    )


def data_plane(path: Path) -> Mapping[str, str]:
    """Client ids by field of the HostedCluster API (`dp-output.json`); raises CommandError with every problem in it."""
    problems: list[str] = []
    mapping = _mapping(path, problems)
    found: dict[str, str] = {}
    for row in DATA_PLANE:
        short = row.field.removesuffix(_FIELD_ENDS)
        key = row.field if row.field in mapping else short
        given = mapping.get(key)
        client_id = given if isinstance(given, str) else _text(given, "clientID")
        if client_id is not None and _CLIENT_ID.fullmatch(client_id):
            found[row.field] = client_id.lower()
        elif given is not None:
            problems.append(f"{key}: found no client id; accepted: a UUID, as the script writes it")
    if not problems and not found:
        fields = ", ".join(row.field for row in DATA_PLANE)
        problems.append(f"found no data-plane identity; accepted: one or more of {fields}")
    _refuse(path, problems)
    return found


def workload_identities(path: Path) -> Mapping[str, str]:
    """Client ids by field of the HostedCluster API (`workload-identities.json`).

    `hypershift create iam azure` writes those that the API has elsewhere as `<field>ClientID`
    (`cmd/infra/azure/identities.go:361`). Raises CommandError with every problem in the file.
    """
    problems: list[str] = []
    mapping = _mapping(path, problems)
    keys = {row.field: f"{row.field}ClientID" for row in CONTROL_PLANE if row.workload and row.workload.path}
    found: dict[str, str] = {}
    for row in (each for each in CONTROL_PLANE if each.workload):
        key = keys.get(row.field, row.field)
        given = mapping.get(key)
        client_id = given if isinstance(given, str) else _text(given, "clientID")
        if client_id is not None and _CLIENT_ID.fullmatch(client_id):
            found[row.field] = client_id.lower()
        elif given is not None:
            problems.append(f"{key}: found no client id; accepted: a UUID, as the command writes it")
    if not problems and not found:
        problems.append(
            f"found no identity; accepted: the fields of workloadIdentities in the HostedCluster API and "
            f"{', '.join(keys.values())}"
        )
    _refuse(path, problems)
    return found


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
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            f"{path} cannot be read ({why_unreadable(error)}); give the file that the script wrote"
        ) from None
    try:
        found = _parsed(text)
    except (yaml.YAMLError, RecursionError):
        found = None
    if isinstance(found, Mapping):
        return found
    problems.append("found no object; accepted: what the script wrote, a JSON object")
    return {}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # Strings only: a client id without quotes is no number.
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506


def _text(holder: Any, key: str) -> str | None:
    found = holder.get(key) if isinstance(holder, Mapping) else None
    return found if isinstance(found, str) else None


def _refuse(path: Path, problems: list[str]) -> None:
    if problems:
        raise CommandError(
            "\n".join([f"{path} is not what HyperShift's scripts write:", *(f"- {each}" for each in problems)])
        )
