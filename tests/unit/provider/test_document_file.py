"""`CredentialSecretResource` with the document of a managed identity, which is copied from a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import validate
from localcloud.testing.arm import ArmWorld
from plugin import PluginError, Props
from tests.unit.identity.credentials import world
from tests.unit.provider.conftest import ADDRESS, SECRET
from tests.unit.provider.secret_world import CLIENT, ID, URN, checked, created, inputs, issued, resource, value


def document(tmp_path: Path, certificate: IssuedCertificate) -> Path:
    """A file with the document of a managed identity."""
    path = tmp_path / "credential.json"
    path.write_text(world.document(certificate, client_id=CLIENT, tenant_id=ADDRESS["tenantId"]))
    return path


def imported(path: Path, certificate: IssuedCertificate, **changes: Any) -> Props:
    issued_alone = {"generation": None, "authorityHost": None, "objectId": None, "provenAt": None}
    return inputs(certificate, **{**issued_alone, "file": str(path), **changes})


def test_a_managed_identitys_document_is_copied_from_its_file(in_azure: ArmWorld, tmp_path: Path) -> None:
    certificate = issued()
    path = document(tmp_path, certificate)
    state = created(imported(path, certificate))
    assert value(in_azure) == json.loads(path.read_text())
    assert "generation" not in in_azure.call("GET", ID).json()["tags"]
    assert "client_secret" not in json.dumps(state)


def test_another_encoding_of_a_file_is_written_without_another_certificate(in_azure: ArmWorld, tmp_path: Path) -> None:
    certificate = issued()
    old = imported(document(tmp_path, certificate), certificate)
    state = created(old)
    new = checked({**old, "objectEncoding": "base64"}, old)
    assert set(resource.diff(URN, ID, old, state, new).changes) == {"objectEncoding"}
    resource.update(URN, ID, old, state, new, preview=False)
    text = in_azure.vault("GET", f"/secrets/{SECRET}").json()["value"]
    assert validate(text, now=datetime.now(UTC), object_encoding="base64").thumbprint == certificate.thumbprint


def test_an_older_document_is_not_written_over_a_newer_one(in_azure: ArmWorld, tmp_path: Path) -> None:
    """A second machine has a file that is older than the stack's."""
    newer, older = issued(), issued(timedelta(days=2))
    old = imported(document(tmp_path, newer), newer)
    state = created(old)
    path = document(tmp_path, older)

    with pytest.raises(PluginError) as refused:
        resource.update(URN, ID, old, state, imported(path, older), preview=False)

    assert validate(json.dumps(value(in_azure)), now=datetime.now(UTC)).thumbprint == newer.thumbprint
    for part in (path, rfc3339.render(older.not_before), rfc3339.render(newer.not_before), f"--name {SECRET}"):
        assert str(part) in str(refused.value)


def test_a_later_document_is_written_over_one_of_another_writer(in_azure: ArmWorld, tmp_path: Path) -> None:
    older, newer = issued(timedelta(days=2)), issued()
    old = imported(document(tmp_path, older), older)
    state = created(old)
    in_azure.vault("PUT", f"/secrets/{SECRET}", {"value": "theirs", "attributes": {"nbf": 1}})

    resource.update(URN, ID, old, state, imported(document(tmp_path, newer), newer), preview=False)

    assert validate(json.dumps(value(in_azure)), now=datetime.now(UTC)).thumbprint == newer.thumbprint


def test_another_path_of_the_same_document_is_no_change(in_azure: ArmWorld, tmp_path: Path) -> None:
    certificate = issued()
    old = imported(document(tmp_path, certificate), certificate)
    assert resource.diff(URN, ID, old, old, {**old, "file": "elsewhere.json"}).changes == {}


def test_a_file_that_changed_under_way_is_refused(in_azure: ArmWorld, tmp_path: Path) -> None:
    path = document(tmp_path, issued())
    with pytest.raises(PluginError, match=r"credential\.json changed while the stack was deployed"):
        created(imported(path, issued()))


def test_a_file_that_is_gone_is_an_error_without_its_content(in_azure: ArmWorld, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"gone\.json cannot be read \(FileNotFoundError\)"):
        created(imported(tmp_path / "gone.json", issued()))
