"""The credential source `managed-identity`: a document that was issued elsewhere, read before it is stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from components.azure.credential_secret import summary_of
from components.preflight.imported_documents import document_in, read_document
from identity.settings import ImportedCredentialSettings
from tests.unit.components.world import REGISTRY, TENANT
from tests.unit.identity.credentials.world import certificate, document


@pytest.mark.parametrize("object_encoding", ["utf-8", "base64", "hex"])
def test_what_comes_in_is_json_whatever_form_it_will_be_stored_in(object_encoding: str, tmp_path: Path) -> None:
    issued = certificate()
    text = document(issued, tenant_id=TENANT, client_id=REGISTRY["clientId"])
    (tmp_path / "ciro.json").write_text(text, encoding="utf-8")

    credential = ImportedCredentialSettings(file=str(tmp_path / "ciro.json"))
    found = read_document(
        credential,
        now=datetime.now(UTC),
        tenant_id=TENANT,
        client_id=REGISTRY["clientId"],
        object_encoding=object_encoding,
    )
    inputs = document_in(credential, found, REGISTRY["clientId"])

    known = json.loads(text)
    assert inputs == {
        "file": str(tmp_path / "ciro.json"),
        "clientId": REGISTRY["clientId"],
        "thumbprint": issued.thumbprint,
        "notBefore": known["not_before"],
        "notAfter": known["not_after"],
        "renewAfter": known["renew_after"],
        "cannotRenewAfter": known["cannot_renew_after"],
    }
    assert summary_of(inputs) == {
        "notAfter": known["not_after"],
        "renewAfter": known["renew_after"],
        "thumbprint": issued.thumbprint,
        "generation": None,
    }
