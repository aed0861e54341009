"""The Key Vault as it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor, Registered, run
from tests.unit.components.world import SUBNET, TENANT, VAULT, key_vault


def built(**changes: Any) -> RecordingMonitor:
    return run(lambda: key_vault(**changes))


def vault(**changes: Any) -> Registered:
    return built(**changes).one("azure-native:keyvault:Vault", "vault-vault")


def test_access_is_by_role_and_what_is_deleted_can_be_recovered() -> None:
    assert vault(defaultAction="Deny", allowedIpRanges=["203.0.113.0/28"], allowedSubnetIds=[SUBNET]).inputs == {
        "vaultName": "kv-idstack-dev",
        "resourceGroupName": "identity-dev",
        "location": "eastus",
        "tags": {"team": "identity"},
        "properties": {
            "tenantId": TENANT,
            "sku": {"family": "A", "name": "standard"},
            "enableRbacAuthorization": True,
            "enabledForDeployment": False,
            "enabledForDiskEncryption": False,
            "enabledForTemplateDeployment": False,
            "enableSoftDelete": True,
            "softDeleteRetentionInDays": 90,
            "enablePurgeProtection": True,
            "publicNetworkAccess": "Enabled",
            "networkAcls": {
                "bypass": "None",
                "defaultAction": "Deny",
                "ipRules": [{"value": "203.0.113.0/28"}],
                "virtualNetworkRules": [{"id": SUBNET}],
            },
        },
    }


def test_disabled_purge_protection_is_left_out() -> None:
    assert "enablePurgeProtection" not in vault(purgeProtection=False).inputs["properties"]


def test_public_network_access_can_be_disabled() -> None:
    assert vault(publicNetworkAccess=False).inputs["properties"]["publicNetworkAccess"] == "Disabled"


@pytest.mark.parametrize("protect", [True, False])
def test_it_is_protected_against_deletion_where_the_settings_say_so(program: Program, protect: bool) -> None:
    recorder = program(hostedClusters=[], protect=str(protect).lower())

    assert recorder.one("azure-native:keyvault:Vault").request.protect is protect


def test_its_outputs_are_name_id_and_address() -> None:
    assert built().outputs_of("vault") == {
        "vault_name": "kv-idstack-dev",
        "vault_id": VAULT,
        "vault_uri": "https://kv-idstack-dev.vault.azure.net/",
    }
