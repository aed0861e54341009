"""The Key Vault secret with a credential document, as the plugin gets it from the program."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pulumi
import pytest

from components.azure.credential_secret import (
    CredentialDates,
    DocumentFile,
    IssuedDocument,
    credential_secret,
)
from components.azure.vault import Vault
from identity.settings import IdentitySettings
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.world import TENANT, VAULT, settings, store, vault_args

SECRET = "idstack:index:CredentialSecret"
DATES = CredentialDates(
    # 08:55 in UTC
    not_before=datetime(2026, 11, 21, 10, 55, tzinfo=timezone(timedelta(hours=2))),
    not_after=datetime(2027, 2, 19, 8, 55, tzinfo=UTC),
    renew_after=datetime(2027, 1, 5, 10, 55, tzinfo=timezone(timedelta(hours=2))),
    cannot_renew_after=datetime(2027, 2, 19, 8, 55, tzinfo=UTC),
)
WRITTEN_DATES = {
    "notBefore": "2026-11-21T08:55:00Z",
    "notAfter": "2027-02-19T08:55:00Z",
    "renewAfter": "2027-01-05T08:55:00Z",
    "cannotRenewAfter": "2027-02-19T08:55:00Z",
}
PLACE = {
    "cloud": "AzurePublicCloud",
    "tenantId": TENANT,
    "vaultId": VAULT,
    "secretName": "cpo-hc1-json",
    "tags": {"team": "identity"},
    "ownerId": "an-owner-id",
}


def issued_document() -> IssuedDocument:
    return IssuedDocument(
        authority_host="https://login.microsoftonline.com/",
        client_id=pulumi.Output.from_input("client"),
        object_id=pulumi.Output.from_input("principal"),
        thumbprint=pulumi.Output.from_input("0A1B"),
        generation=pulumi.Output.from_input("a2"),
        dates=pulumi.Output.from_input(DATES),
        proven_at=pulumi.Output.from_input("2026-11-21T09:00:30Z"),
    )


def document_file() -> DocumentFile:
    return DocumentFile(path="ciro.json", client_id="client", thumbprint="0A1B", dates=DATES)


def built(*, is_file: bool = False, object_encoding: Any = "utf-8", **changes: Any) -> RecordingMonitor:
    def build() -> None:
        credential_secret(
            "credential-secret",
            document_file() if is_file else issued_document(),
            IdentitySettings.model_construct(enabled=True, secret_name="cpo-hc1-json", object_encoding=object_encoding),
            settings(**changes),
            store(Vault("vault", vault_args())),
            stack_owner="an-owner-id",
            opts=pulumi.ResourceOptions(),
        )

    return run(build)


def test_an_issued_document_is_named_by_its_certificate() -> None:
    secret = built().one(SECRET, "credential-secret")

    assert secret.inputs == {
        **PLACE,
        **WRITTEN_DATES,
        "objectEncoding": "utf-8",
        "authorityHost": "https://login.microsoftonline.com/",
        "clientId": "client",
        "objectId": "principal",
        "thumbprint": "0A1B",
        "generation": "a2",
        "provenAt": "2026-11-21T09:00:30Z",
    }
    assert secret.secrets == frozenset()


def test_an_imported_document_is_named_by_its_file() -> None:
    secret = built(is_file=True).one(SECRET, "credential-secret")

    assert secret.inputs == {
        **PLACE,
        **WRITTEN_DATES,
        "objectEncoding": "utf-8",
        "file": "ciro.json",
        "clientId": "client",
        "thumbprint": "0A1B",
    }
    assert secret.secrets == frozenset()


@pytest.mark.parametrize("object_encoding", ["utf-8", "base64", "hex"])
def test_the_plugin_stores_it_in_its_object_encoding(object_encoding: str) -> None:
    assert built(object_encoding=object_encoding).one(SECRET).inputs["objectEncoding"] == object_encoding


def test_it_has_the_tags_of_the_stack() -> None:
    assert built(tags={"team": "other", "cost": "1"}).one(SECRET).inputs["tags"] == {"team": "other", "cost": "1"}


def test_it_comes_after_the_vault() -> None:
    recorder = built()

    assert recorder.waits_for(recorder.one(SECRET), recorder.one("azure-native:keyvault:Vault"))
