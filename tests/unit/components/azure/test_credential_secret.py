"""The Key Vault secret with a credential document, as the plugin gets it from the program."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.azure.credential_secret import credential_secret
from components.azure.vault import Vault
from identity.plugin_schema import CredentialDocument
from identity.settings import IdentitySettings
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.world import DOCUMENT, TENANT, VAULT, settings, store, vault_args

SECRET = "idstack:index:CredentialSecret"
PLACE = {
    "cloud": "AzurePublicCloud",
    "tenantId": TENANT,
    "vaultId": VAULT,
    "secretName": "cpo-hc1-json",
    "tags": {"team": "identity"},
    "ownerId": "an-owner-id",
}


def issued_document() -> CredentialDocument[pulumi.Input[str]]:
    return {
        "authorityHost": "https://login.microsoftonline.com/",
        "clientId": "client",
        "objectId": "principal",
        "thumbprint": pulumi.Output.from_input("0A1B"),
        "generation": pulumi.Output.from_input("a2"),
        "provenAt": pulumi.Output.from_input("2026-11-21T09:00:30Z"),
        "notBefore": "2026-11-21T08:55:00Z",
        "notAfter": "2027-02-19T08:55:00Z",
        "renewAfter": pulumi.Output.from_input("2027-01-05T08:55:00Z"),
        "cannotRenewAfter": "2027-02-19T08:55:00Z",
    }


def built(*, is_file: bool = False, object_encoding: Any = "utf-8", **changes: Any) -> RecordingMonitor:
    def build() -> None:
        credential_secret(
            "credential-secret",
            {**DOCUMENT} if is_file else issued_document(),
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
        "objectEncoding": "utf-8",
        "authorityHost": "https://login.microsoftonline.com/",
        "clientId": "client",
        "objectId": "principal",
        "thumbprint": "0A1B",
        "generation": "a2",
        "provenAt": "2026-11-21T09:00:30Z",
        "notBefore": "2026-11-21T08:55:00Z",
        "notAfter": "2027-02-19T08:55:00Z",
        "renewAfter": "2027-01-05T08:55:00Z",
        "cannotRenewAfter": "2027-02-19T08:55:00Z",
    }
    assert secret.secrets == frozenset()


def test_an_imported_document_is_named_by_its_file() -> None:
    secret = built(is_file=True).one(SECRET, "credential-secret")

    assert secret.inputs == {**PLACE, **DOCUMENT, "objectEncoding": "utf-8"}
    assert secret.secrets == frozenset()


@pytest.mark.parametrize("object_encoding", ["utf-8", "base64", "hex"])
def test_the_plugin_stores_it_in_its_object_encoding(object_encoding: str) -> None:
    assert built(object_encoding=object_encoding).one(SECRET).inputs["objectEncoding"] == object_encoding


def test_it_has_the_tags_of_the_stack() -> None:
    assert built(tags={"team": "other", "cost": "1"}).one(SECRET).inputs["tags"] == {"team": "other", "cost": "1"}


def test_it_comes_after_the_vault() -> None:
    recorder = built()

    assert recorder.waits_for(recorder.one(SECRET), recorder.one("azure-native:keyvault:Vault"))
