"""The two files of HyperShift's scripts: what is in them arrives, and what else there is is refused with a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from ops.adoption import files
from ops.adoption.files import ScriptIdentity
from ops.stack.errors import CommandError

FIELDS = [row.field for row in CONTROL_PLANE]
MANAGED = [row.field for row in DATA_PLANE]
CLIENT_ID = "6f2c1e7a-0000-4000-8000-00000000aaaa"
names = st.from_regex(r"[a-zA-Z0-9-]{1,40}", fullmatch=True)
client_ids = st.uuids().map(str)
# The test writes the file again for each example.
rewritten = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def identity(client_id: str = CLIENT_ID, name: str = "cpo-p", **changes: Any) -> dict[str, Any]:
    """One entry of `cp-output.json`."""
    return {
        "certificateName": name,
        "clientID": client_id,
        "credentialsSecretName": f"{name}-json",
        "objectEncoding": "utf-8",
        **changes,
    }


def written(path: Path, text: str) -> Path:
    file = path / "output.json"
    file.write_text(text, encoding="utf-8")
    return file


WORKLOAD = {row.field: f"{row.field}ClientID" for row in CONTROL_PLANE if row.workload and row.workload.path}
OWN = [row.field for row in CONTROL_PLANE if row.workload and not row.workload.path]


@rewritten
@given(st.dictionaries(st.sampled_from([*OWN, *WORKLOAD]), client_ids, min_size=1))
def test_every_workload_identity_of_the_file_arrives(tmp_path: Path, given: dict[str, str]) -> None:
    """As `hypershift create iam azure` writes them: objects, and the client id of KMS beside them."""
    document = {
        WORKLOAD.get(field, field): id if field in WORKLOAD else {"clientID": id} for field, id in given.items()
    }

    assert files.workload_identities(written(tmp_path, json.dumps(document))) == given


@pytest.mark.parametrize("text", ["{}", '{"disk": {"clientID": "x"}}', "[]", '{"kmsClientID": {}}'])
def test_what_create_iam_does_not_write_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(CommandError, match="is not what HyperShift's scripts write"):
        files.workload_identities(written(tmp_path, text))


@rewritten
@given(st.dictionaries(st.sampled_from([*FIELDS, "velero"]), st.tuples(client_ids, names), min_size=1), names)
def test_every_identity_of_the_file_arrives(tmp_path: Path, given: dict[str, tuple[str, str]], vault: str) -> None:
    document = {field: identity(*pair) for field, pair in given.items()}
    text = json.dumps({**document, "managedIdentitiesKeyVault": {"name": vault, "tenantID": CLIENT_ID}})
    if not given.keys() & set(FIELDS):
        with pytest.raises(CommandError, match="found no control-plane identity"):
            files.control_plane(written(tmp_path, text))
        return

    found = files.control_plane(written(tmp_path, text))

    expected = {field: ScriptIdentity(id, f"{name}-json", "utf-8", name) for field, (id, name) in given.items()}
    assert {**found.identities, **found.others} == expected
    assert found.others.keys() == given.keys() - set(FIELDS)
    assert found.vault == vault


@rewritten
@given(st.dictionaries(st.sampled_from(MANAGED), st.uuids(), min_size=1))
def test_client_ids_have_no_quotes_in_the_scripts_file(tmp_path: Path, given: dict[str, UUID]) -> None:
    """`setup_dataplane_identities.sh` prints what `az --output tsv` prints, which is not JSON."""
    lines = ",\n".join(f'  "{field}": {client_id}' for field, client_id in given.items())

    found = files.data_plane(written(tmp_path, f"{{\n{lines}\n}}\n"))

    assert found == {field: str(client_id) for field, client_id in given.items()}


def test_client_ids_are_compared_in_lower_case(tmp_path: Path) -> None:
    """A person may have written the file; Graph and ARM answer in lower case."""
    whole = written(tmp_path, json.dumps({FIELDS[0]: identity(CLIENT_ID.upper())}))
    assert files.control_plane(whole).identities[FIELDS[0]].client_id == CLIENT_ID
    assert files.data_plane(written(tmp_path, json.dumps({MANAGED[0]: CLIENT_ID.upper()}))) == {MANAGED[0]: CLIENT_ID}


@pytest.mark.parametrize("client_id", ["12345678-1234-4123-8123-123456789012", "00000000-0000-4000-8000-00000000000e"])
def test_a_client_id_of_digits_is_read_as_it_is(tmp_path: Path, client_id: str) -> None:
    assert files.data_plane(written(tmp_path, f"{{{MANAGED[0]}: {client_id}}}")) == {MANAGED[0]: client_id}


def test_the_file_of_hypershifts_command_line_is_read_too(tmp_path: Path) -> None:
    """`hypershift create iam azure --output-file`."""
    keys = {field: field.removesuffix("MSIClientID") for field in MANAGED}
    document = {key: {"clientID": CLIENT_ID} for key in [*keys.values(), "nodePoolManagement"]}

    assert files.data_plane(written(tmp_path, json.dumps(document, indent="\t"))) == dict.fromkeys(keys, CLIENT_ID)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"clientID": None}, "clientID: found no client id"),
        ({"clientID": "null"}, "clientID: found no client id"),
        ({"credentialsSecretName": ""}, "credentialsSecretName: found no name of a secret"),
        ({"credentialsSecretName": "a/b"}, "credentialsSecretName: found no name of a secret"),
    ],
)
def test_an_identity_that_is_not_whole_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    document = {FIELDS[0]: identity(**changes), FIELDS[1]: identity(clientID="")}

    with pytest.raises(CommandError) as refused:
        files.control_plane(written(tmp_path, json.dumps(document)))

    assert f"- {FIELDS[0]}.{problem}" in str(refused.value)
    assert f"- {FIELDS[1]}.clientID" in str(refused.value), "all problems at once"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FIELDS, *MANAGED, "x"]), inner),
    max_leaves=10,
)


@rewritten
@given(st.one_of(st.text(), json_values.map(json.dumps)))
def test_any_other_file_is_refused_with_a_message(tmp_path: Path, text: str) -> None:
    for read in (files.control_plane, files.data_plane):
        with pytest.raises(CommandError, match="is not what HyperShift's scripts write"):
            read(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for read in (files.control_plane, files.data_plane):
        with pytest.raises(CommandError, match=r"cp\.json cannot be read \(no such file or directory\)"):
            read(tmp_path / "cp.json")
