"""The Key Vault secret in msi-dataplane's storage format."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pulumi
import pytest

from components.azure.credential_secret import (
    CredentialDates,
    CredentialDocument,
    CredentialSecret,
    CredentialSecretArgs,
)
from components.azure.vault import Vault
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.world import store, vault_args

SECRET = "azure-native:keyvault:Secret"
TEXT = '{"client_id":"ü"}'
DATES = CredentialDates(
    # 08:55 in UTC
    not_before=datetime(2026, 11, 21, 10, 55, tzinfo=timezone(timedelta(hours=2))),
    not_after=datetime(2027, 2, 19, 8, 55, tzinfo=UTC),
    renew_after=datetime(2027, 1, 5, 10, 55, tzinfo=timezone(timedelta(hours=2))),
    cannot_renew_after=datetime(2027, 2, 19, 8, 55, tzinfo=UTC),
)


def built(object_encoding: str = "utf-8", **tags: str) -> RecordingMonitor:
    def build() -> None:
        args = CredentialSecretArgs(
            secret_name="cpo-hc1-json",
            object_encoding=object_encoding,
            store=store(Vault("vault", vault_args())),
            document=CredentialDocument(text=pulumi.Output.secret(TEXT), dates=pulumi.Output.from_input(DATES)),
            tags=tags,
        )
        CredentialSecret("credential", args)

    return run(build)


def test_validity_is_in_the_attributes_and_renewal_dates_are_tags() -> None:
    assert built(team="identity").one(SECRET, "credential-secret").inputs == {
        "secretName": "cpo-hc1-json",
        "resourceGroupName": "identity-dev",
        "vaultName": "kv-idstack-dev",
        "properties": {
            "value": TEXT,
            "contentType": "application/json",
            "attributes": {"enabled": True, "notBefore": 1795251300, "expires": 1803027300},
        },
        "tags": {
            "team": "identity",
            "renew_after": "2027-01-05T08:55:00Z",
            "cannot_renew_after": "2027-02-19T08:55:00Z",
        },
    }


def test_the_document_is_secret_and_its_dates_are_not() -> None:
    assert built().one(SECRET).secrets == {"properties.value"}


@pytest.mark.parametrize(
    ("object_encoding", "decoded"),
    [
        ("utf-8", lambda value: value),
        ("base64", lambda value: base64.b64decode(value, validate=True).decode()),
        ("hex", lambda value: bytes.fromhex(value).decode()),
    ],
)
def test_the_document_is_stored_in_its_object_encoding(object_encoding: str, decoded: Callable[[str], str]) -> None:
    recorder = built(object_encoding)

    assert decoded(recorder.one(SECRET).inputs["properties"]["value"]) == TEXT
    assert recorder.one(SECRET).secrets == {"properties.value"}


def test_no_tag_of_the_user_replaces_a_date() -> None:
    assert built(renew_after="never").one(SECRET).inputs["tags"]["renew_after"] == "2027-01-05T08:55:00Z"


def test_it_comes_after_the_vault() -> None:
    recorder = built()

    assert recorder.waits_for(recorder.one(SECRET), recorder.one("azure-native:keyvault:Vault"))


def test_its_output_is_the_name() -> None:
    assert built().outputs_of("credential") == {"secret_name": "cpo-hc1-json"}
