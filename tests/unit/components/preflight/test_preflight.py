"""The comparison of the providers' tenant with the configured one, and the warning of backups in other clouds."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from unittest.mock import AsyncMock, Mock

import pulumi
import pytest

from components.azure.providers import Deployer
from components.preflight.preflight import check_tenant
from tests.unit.components.program import Program
from tests.unit.components.world import DEPLOYER, DEPLOYER_CLIENT, GROUPS, TENANT, hosted_cluster, lookups

OTHER_TENANT = "88888888-8888-4777-8666-555555555555"


SIGN_IN = "the deployer cannot sign in to Azure: "


def signed_in_to(tenant: str) -> dict[str, str]:
    return {"tenantId": tenant, "objectId": DEPLOYER, "clientId": DEPLOYER_CLIENT}


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (
            signed_in_to(OTHER_TENANT),
            f"signed in to the tenant {OTHER_TENANT}, but idstack:tenantId is {TENANT}. Nothing was changed. Sign in "
            f"with `az login --tenant {TENANT}` (in CI: set ARM_TENANT_ID), or correct it with "
            f"`.venv/bin/idstack pulumi --stack test -- config set tenantId {OTHER_TENANT}`.",
        ),
        (
            RuntimeError("AADSTS7000215: Invalid client\nsecret provided."),
            f"{SIGN_IN}AADSTS7000215: Invalid client secret provided. Nothing was changed. "
            f"Sign in with `az login --tenant {TENANT}` (in CI: set the ARM_* variables of the providers).",
        ),
        (
            RuntimeError("AADSTS700024: Client assertion is not within its valid time range."),
            f"{SIGN_IN}AADSTS700024: Client assertion is not within its valid time range. Nothing was changed. "
            "This machine's clock and Entra ID's are more than five minutes apart: set it right.",
        ),
    ],
    ids=["another tenant", "refused", "wrong clock"],
)
def test_a_deployer_of_another_tenant_or_of_none_is_an_error_with_a_fix(
    program: Program, answer: Any, failure: str
) -> None:
    recorder = program(invokes=lookups(getClientConfig=answer), options={"refused": True})

    assert str(recorder.failure) == failure
    assert [name for name in recorder.names() if not name.startswith("pulumi:providers:")] == []
    assert [call.function for call in recorder.invoked if call.provider] == [
        "azure-native:authorization:getClientConfig"
    ]


def test_a_local_cloud_that_has_ended_is_started_and_not_signed_in_to(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = AsyncMock(side_effect=RuntimeError("returned an error: [Errno 111] Connection refused"))
    monkeypatch.setattr("pulumi.runtime.invoke_async", refused)
    local = Mock(tenant_id=TENANT)
    local.cloud.name = "local"

    with pytest.raises(pulumi.RunError, match=r"refused. Nothing was changed. `.venv/bin/idstack local start` starts"):
        asyncio.run(check_tenant(local, Mock()))


def test_a_tenant_is_the_same_in_capitals(program: Program) -> None:
    tenant = "ABCDEF99-8888-4777-8666-555555555555"

    recorder = program(
        hostedClusters=[], tenantId=tenant.lower(), invokes=lookups(getClientConfig=signed_in_to(tenant))
    )

    assert recorder.stack_outputs.values["tenantId"] == tenant.lower()


@pytest.mark.parametrize(
    ("client", "is_application"), [(DEPLOYER_CLIENT, True), ("04B07795-8ddb-461a-bbee-02f9e1bf7b46", False)]
)
def test_a_person_is_known_by_the_client_of_the_azure_cli(client: str, is_application: bool) -> None:
    deployer = Deployer.of({"tenantId": TENANT.upper(), "objectId": DEPLOYER, "clientId": client})

    assert (deployer.tenant_id, deployer.is_service_principal) == (TENANT, is_application)


_ACCOUNT: Final = f"{GROUPS}/backup-dev/providers/Microsoft.Storage/storageAccounts/backupsdev"
_BACKUPS: Final = {"identities": {"etcdBackup": {"enabled": True}}, "backupStorageAccountID": _ACCOUNT}
_GOVERNMENT_KMS: Final = {
    "activeKey": "https://kv-etcd-dev.vault.usgovcloudapi.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef",
    "keyVaultResourceGroup": "etcd-dev",
}


@pytest.mark.parametrize(
    ("cloud", "backups", "warnings"),
    [("AzureUSGovernmentCloud", _BACKUPS, 1), ("AzureUSGovernmentCloud", {}, 0), ("AzurePublicCloud", _BACKUPS, 0)],
)
def test_backups_in_a_sovereign_cloud_are_a_warning(
    program: Program, monkeypatch: pytest.MonkeyPatch, cloud: str, backups: dict[str, Any], warnings: int
) -> None:
    warned: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", warned.append)
    kms = {} if cloud == "AzurePublicCloud" else {"kms": _GOVERNMENT_KMS}
    program(cloud=cloud, hostedClusters=[hosted_cluster(**kms, **backups)], lookups_only=True)

    assert (
        warned
        == [
            "idstack:hostedClusters[0] has etcdBackup, and HyperShift uploads etcd backups to "
            "<account>.blob.core.windows.net alone, which AzureUSGovernmentCloud does not have "
            "(openshift/hypershift#9457): the identity is made, and an HCPEtcdBackup fails"
        ]
        * warnings
    )
