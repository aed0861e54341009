"""The Key Vault as it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.world import SUBNET, TENANT, VAULT, key_vault


def built(**changes: Any) -> RecordingMonitor:
    return run(lambda: key_vault(**changes))


VAULT_TYPE = "azure-native:keyvault:Vault"


def test_access_is_by_role_and_what_is_deleted_can_be_recovered() -> None:
    open_to = {"defaultAction": "Deny", "allowedIpRanges": ["203.0.113.0/28"], "allowedSubnetIds": [SUBNET]}
    recorder = built(**open_to)

    assert recorder.one(VAULT_TYPE, "vault-vault").inputs == {
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
    assert recorder.outputs_of("vault") == {
        "vault_name": "kv-idstack-dev",
        "vault_id": VAULT,
        "vault_uri": "https://kv-idstack-dev.vault.azure.net/",
    }


def test_purge_protection_and_public_access_can_be_switched_off() -> None:
    properties = built(purgeProtection=False, publicNetworkAccess=False).one(VAULT_TYPE).inputs["properties"]

    assert "enablePurgeProtection" not in properties
    assert properties["publicNetworkAccess"] == "Disabled"


@pytest.mark.parametrize("protect", [True, False])
def test_it_is_protected_against_deletion_where_the_settings_say_so(program: Program, protect: bool) -> None:
    recorder = program(hostedClusters=[], protect=str(protect).lower())

    assert recorder.one(VAULT_TYPE).request.protect is protect
