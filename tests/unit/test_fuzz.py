"""Whatever others put into an id, a document, a kubeconfig, a backup, a fleet file or a file to adopt: it is read, or
refused by an error of the product that shows no key, and what is read says what the text says.

Each is changed from a base that is accepted. Settings have `identity/settings/test_settings_fuzz.py`, and credential
documents are compared with msi-dataplane besides (`identity/credentials/test_msi_dataplane_fuzz.py`).
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity import naming
from identity.aks.exec_plugin import API_VERSIONS, ExecRequest
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.legacy_login import is_convertible, legacy_login_of
from identity.azure import certificate_file
from identity.azure.errors import AccessError
from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.credentials import document, rfc3339
from localcloud.testing.hosted_clusters import UUID, hosted_cluster
from ops.adoption import files
from ops.fleet.file import fleet_of
from ops.stack import backup
from ops.stack.errors import CommandError
from tests.unit.identity.credentials import world
from tests.unit.identity.settings.test_settings_fuzz import ODD, ODD_JSON, entries
from tests.unit.ops.fleet.world import AZURE
from tests.unit.ops.fleet.world import document as fleet_document
from tests.unit.ops.stack.test_backup import made

_NESTED: Final = "[" * 1000  # more than Python recurses; of 3000, PyYAML looks for keys for a second


@dataclass(frozen=True)
class Reader:
    """What reads such a text: a base that it accepts, and a function that also compares what it makes of it.

    A base that is text is changed as a text only.
    """

    base: Any
    read: Callable[[str, Path], object]


@cache
def issued() -> Any:
    return world.certificate()


def _credential(text: str, encoding: str) -> None:
    found = document.decode(text, object_encoding=encoding)
    numbers = found.certificate.public_key().public_numbers()  # type: ignore[union-attr]
    assert found.key_material.private_key.public_key().public_numbers() == numbers
    raw = {"base64": base64.b64decode, "hex": bytes.fromhex}.get(encoding, str.encode)
    assert found.authority_host.encode() in raw(text), "the text names another one"


def _kubeconfig(text: str, folder: Path) -> None:
    found = Kubeconfig.parse(text, "kubeconfig", folder)
    context = found.chosen()
    for user, content in found.entries("users").items():
        if is_convertible(content):
            legacy_login_of(content, user)
    written = found.only(context, user={"token": "t"}).flattened()
    assert Kubeconfig.parse(written.to_yaml(), "again").entries("clusters") == written.entries("clusters")


def _arm_id(text: str, _: Path) -> None:
    found = naming.parse_vault_id(text)
    again = naming.resource_id(found.subscription, found.resource_group, found.type, *found.names)
    assert again.lower() == text.lower().rstrip("/")
    assert naming.is_vault_name(found.name)


def _time(text: str, _: Path) -> None:
    assert rfc3339.parse(text).replace(microsecond=0) == rfc3339.parse(rfc3339.render(rfc3339.parse(text)))


def _exec_info(text: str, _: Path) -> None:
    assert ExecRequest({"KUBERNETES_EXEC_INFO": text}).api_version in API_VERSIONS


def _of_file(read: Callable[[Path], object]) -> Callable[[str, Path], object]:
    def read_text(text: str, folder: Path) -> object:
        file = folder / "file"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        return read(file)

    return read_text


def _saying(read: Callable[[Path], object], values: Callable[[Any], Collection[str]]) -> Callable[[str, Path], object]:
    """Reads a file of scripts, of which something has to arrive, and nothing else."""

    def checked(file: Path) -> None:
        found, text = values(read(file)), file.read_text(encoding="utf-8").lower()
        assert found
        assert all(value.lower() in text for value in found)

    return _of_file(checked)


def _identity(name: str) -> dict[str, str]:
    return {"certificateName": name, "clientID": UUID.format(3), "credentialsSecretName": f"{name}-json"}


KUBECONFIG: Final = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://c", "certificate-authority-data": "Q0E="}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "users": [
        {"name": "u", "user": {"auth-provider": {"name": "azure", "config": {"environment": "AzurePublicCloud"}}}},
        {"name": "v", "user": {"exec": {"command": "kubelogin", "args": ["get-token", "--server-id", "s"]}}},
    ],
    "current-context": "c",
}
READERS: Final = {
    "vault id": Reader(naming.vault_id("s", "rg", "kv-1"), _arm_id),
    "time": Reader(rfc3339.EXAMPLE, _time),
    "kubeconfig": Reader(KUBECONFIG, _kubeconfig),
    "exec info": Reader({"apiVersion": API_VERSIONS[0], "spec": {"interactive": True}}, _exec_info),
    "backup": Reader(json.loads(made().model_dump_json()), _of_file(lambda file: backup.read(file, "dev"))),
    "fleet": Reader(fleet_document(AZURE), lambda text, _: fleet_of(text)),
    "control plane": Reader(
        {row.field: {**_identity(row.field.lower()), "objectEncoding": "utf-8"} for row in CONTROL_PLANE},
        _saying(
            lambda file: files.control_plane(file, "kv-1"),
            lambda found: [identity.client_id for identity in found.identities.values()],
        ),
    ),
    "data plane": Reader({row.field: UUID.format(4) for row in DATA_PLANE}, _saying(files.data_plane, dict.values)),
    "workload identities": Reader(
        {f"{row.field}ClientID": UUID.format(4) for row in CONTROL_PLANE if row.workload and row.workload.path},
        _saying(files.workload_identities, dict.values),
    ),
    "hosted cluster": Reader(
        hosted_cluster("hc1"), _of_file(lambda file: files.read_manifest(file, "hc1", {}, UUID.format(1)))
    ),
}


def _shows_no_key(message: str) -> None:
    body = "".join(issued().private_key_pem.splitlines()[1:-1])
    assert not any(body[at : at + 40] in message for at in range(0, len(body) - 40, 20))


def _read(reader: Reader, text: str, folder: Path) -> None:
    message = ""
    try:
        reader.read(text, folder)
    except UnicodeError:
        raise
    except (AccessError, CommandError, ValueError) as error:
        message = str(error)
    _shows_no_key(message)


@pytest.mark.parametrize("name", READERS)
def test_the_base_is_accepted_and_nesting_is_no_trace(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    reader.read(reader.base if isinstance(reader.base, str) else json.dumps(reader.base), tmp_path)
    _read(reader, _NESTED, tmp_path)


@pytest.mark.parametrize("name", READERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_changed_anywhere_is_read_or_explained(name: str, tmp_path: Path, data: st.DataObject) -> None:
    reader, changed = READERS[name], copy.deepcopy(READERS[name].base)
    for _ in range(0 if isinstance(changed, str) else data.draw(st.integers(1, 4))):
        holder, step = data.draw(st.sampled_from(entries(changed)))
        match data.draw(st.integers(0, 3)):
            case 0 if isinstance(holder, dict):
                holder[data.draw(ODD)] = data.draw(ODD_JSON)
            case 1:
                del holder[step]
                if not entries(changed):
                    break
            case _:
                holder[step] = data.draw(ODD_JSON)
    text = changed if isinstance(changed, str) else json.dumps(changed)
    if isinstance(changed, str) or data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(ODD) + text[at + data.draw(st.integers(0, 3)) :]

    _read(reader, text, tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8", "base64", "hex"])
@given(data=st.data())
def test_a_credential_is_read_with_its_own_key_or_explained(encoding: str, data: st.DataObject) -> None:
    fields = json.loads(world.document(issued()))
    for _ in range(data.draw(st.integers(0, 3))):
        fields[data.draw(st.sampled_from([*fields]) | ODD)] = data.draw(ODD_JSON)
    text = document.wrap(json.dumps(fields), encoding)
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(ODD) + text[at + data.draw(st.integers(0, 3)) :]
    _read(Reader("", lambda text, _: _credential(text, encoding)), text, Path())
    data_file = data.draw(
        st.sampled_from([text.encode("utf-8", "surrogatepass"), base64.b64encode(text.encode("utf-8", "replace"))])
    )
    _read(Reader("", lambda *_: certificate_file.parse("f", data_file, None, datetime.now(UTC))), "", Path())
