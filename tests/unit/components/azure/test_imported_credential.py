"""The credential source `managed-identity`: a document that was issued elsewhere, validated before it is stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pulumi
import pytest

from components.azure.credential_secret import CredentialDates, DocumentFile
from components.azure.imported_credential import ImportedCredential, StoredDocument
from components.preflight.imported_documents import read_document
from identity.credentials.document import InvalidCredentialError
from identity.settings import ImportedCredentialSettings
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.world import REGISTRY, TENANT, principal
from tests.unit.identity.credentials.world import certificate, document

START, END = datetime(2026, 11, 21, tzinfo=UTC), datetime(2027, 2, 19, tzinfo=UTC)
DATES = CredentialDates(
    not_before=START, not_after=END, renew_after=datetime(2027, 1, 5, tzinfo=UTC), cannot_renew_after=END
)
DOCUMENT = DocumentFile(path="ciro.json", client_id=REGISTRY["clientId"], dates=DATES, thumbprint="0A1B")


def built(document: DocumentFile | StoredDocument) -> RecordingMonitor:
    def build() -> None:
        source = ImportedCredential(principal=principal(), document=document)
        pulumi.export("shown", source.summary)
        pulumi.export("ids", [source.client_id, source.principal_id])
        if isinstance(source.document, DocumentFile):
            pulumi.export("document", source.document.inputs())

    return run(build)


def read(credential: ImportedCredentialSettings, **changes: str) -> DocumentFile:
    expected = {"tenant_id": TENANT, "client_id": REGISTRY["clientId"], "object_encoding": "utf-8", **changes}
    return read_document(credential, now=datetime.now(UTC), **expected)


def test_of_an_imported_document_the_path_is_passed_on_and_nothing_is_secret() -> None:
    outputs = built(DOCUMENT).stack_outputs

    assert outputs.values["document"] == {
        "file": "ciro.json",
        "clientId": REGISTRY["clientId"],
        "thumbprint": "0A1B",
        "notBefore": "2026-11-21T00:00:00Z",
        "notAfter": "2027-02-19T00:00:00Z",
        "renewAfter": "2027-01-05T00:00:00Z",
        "cannotRenewAfter": "2027-02-19T00:00:00Z",
    }
    assert outputs.secrets == frozenset()


def test_of_an_imported_document_dates_and_thumbprint_are_shown() -> None:
    assert built(DOCUMENT).stack_outputs.values["shown"] == {
        "notAfter": "2027-02-19T00:00:00Z",
        "renewAfter": "2027-01-05T00:00:00Z",
        "thumbprint": "0A1B",
        "generation": None,
    }


def test_of_a_document_that_is_in_the_vault_already_its_dates_are_shown() -> None:
    outputs = built(StoredDocument(not_after="2027-02-19T00:00:00Z", renew_after=None)).stack_outputs.values

    assert outputs["shown"] == {
        "notAfter": "2027-02-19T00:00:00Z",
        "renewAfter": None,
        "thumbprint": None,
        "generation": None,
    }


def test_its_ids_are_those_of_the_managed_identity() -> None:
    assert built(DOCUMENT).stack_outputs.values["ids"] == [REGISTRY["clientId"], REGISTRY["principalId"]]


@pytest.mark.parametrize("object_encoding", ["utf-8", "base64", "hex"])
def test_what_comes_in_is_json_whatever_form_it_will_be_stored_in(object_encoding: str, tmp_path: Path) -> None:
    issued = certificate()
    text = document(issued, tenant_id=TENANT, client_id=REGISTRY["clientId"])
    (tmp_path / "ciro.json").write_text(text, encoding="utf-8")

    found = read(ImportedCredentialSettings(file=str(tmp_path / "ciro.json")), object_encoding=object_encoding)

    known = json.loads(text)
    assert (found.path, found.thumbprint) == (str(tmp_path / "ciro.json"), issued.thumbprint)
    names = ("not_before", "not_after", "renew_after", "cannot_renew_after")
    assert [*found.dates.written().values()] == [known[name] for name in names]


def test_a_document_of_another_identity_is_refused(msi_document: str, tmp_path: Path) -> None:
    (tmp_path / "ciro.json").write_text(msi_document, encoding="utf-8")
    credential = ImportedCredentialSettings(file=str(tmp_path / "ciro.json"))

    with pytest.raises(InvalidCredentialError) as caught:
        read(credential, client_id="cccccccc-0000-4000-8000-000000000001", tenant_id=TENANT.replace("9", "8"))

    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["tenant_id", "client_id"]


def test_a_file_that_is_not_there_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(ImportedCredentialSettings(file=str(tmp_path / "ciro.json")))


def test_no_document_shows_in_a_repr(msi_document: str, tmp_path: Path) -> None:
    (tmp_path / "ciro.json").write_text(msi_document, encoding="utf-8")
    found = read(ImportedCredentialSettings(file=str(tmp_path / "ciro.json")))

    shown = repr(ImportedCredential(principal=principal(), document=found))
    assert json.loads(msi_document)["client_secret"] not in shown
