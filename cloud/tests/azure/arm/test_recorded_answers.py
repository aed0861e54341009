"""Which members an answer has, compared with Azure's own as the real azure-native recorded it (record 0035)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from localcloud.testing.arm import SUBSCRIPTION, VAULT, ArmWorld

GROUP: Final = f"{SUBSCRIPTION}/resourceGroups/recorded"
_NETWORK: Final = f"{GROUP}/providers/Microsoft.Network"
_ACCOUNT: Final = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/recorded"
_CLUSTER: Final = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/recorded"
_TRACKED: Final = {"id", "name", "type", "location", "properties"}


@pytest.fixture
def recorded(world: ArmWorld) -> ArmWorld:
    """With the group that everything here is in."""
    answer = world.call("PUT", GROUP, {"location": "eastus"})
    assert answer.json().keys() == _TRACKED, "no tags where none were given"
    return world


def written(world: ArmWorld, path: str, properties: dict[str, Any], **beside: Any) -> dict[str, Any]:
    """What a GET answers about a resource that was written like this."""
    world.call("PUT", path, {"location": "eastus", **beside, "properties": properties}).raise_for_status()
    found: dict[str, Any] = world.call("GET", path).json()
    return found


def test_an_address_and_a_network_have_no_tags_but_a_guid_that_stays(recorded: ArmWorld) -> None:
    path, static = f"{_NETWORK}/publicIPAddresses/one", {"publicIPAllocationMethod": "Static"}
    address, again = (written(recorded, path, static, sku={"name": "Standard"}) for _ in range(2))
    assert address["properties"]["resourceGuid"] == again["properties"]["resourceGuid"]
    assert address.keys() == _TRACKED | {"sku"}
    assert address["properties"].keys() == {
        *("idleTimeoutInMinutes", "ipAddress", "ipTags", "provisioningState", "publicIPAddressVersion"),
        *("publicIPAllocationMethod", "resourceGuid"),
    }
    space = {"addressPrefixes": ["10.1.0.0/16"]}
    network = written(recorded, f"{_NETWORK}/virtualNetworks/one", {"addressSpace": space})
    assert network.keys() == _TRACKED


def test_an_account_has_its_firewall_keys_times_and_encryption(recorded: ArmWorld) -> None:
    account = written(recorded, _ACCOUNT, {}, kind="StorageV2", sku={"name": "Standard_LRS"})
    assert account.keys() == _TRACKED | {"kind", "sku", "tags"}
    assert account["tags"] == {}
    properties = account["properties"]
    assert properties.keys() == {
        *("accessTier", "allowBlobPublicAccess", "allowCrossTenantReplication", "creationTime", "encryption"),
        *("keyCreationTime", "minimumTlsVersion", "networkAcls", "primaryEndpoints", "primaryLocation"),
        *("privateEndpointConnections", "provisioningState", "statusOfPrimary", "supportsHttpsTrafficOnly"),
    }
    firewall = {"bypass": "AzureServices", "defaultAction": "Allow", "ipRules": [], "virtualNetworkRules": []}
    assert properties["networkAcls"] == firewall
    assert properties["keyCreationTime"].keys() == {"key1", "key2"}
    assert properties["encryption"]["services"].keys() == {"blob", "file"}
    assert len(properties["creationTime"]) == len("2024-12-11T00:21:05.6534673Z")
    assert properties["creationTime"].endswith("Z")


def test_a_container_has_its_lease_its_holds_and_no_metadata(recorded: ArmWorld) -> None:
    written(recorded, _ACCOUNT, {}, kind="StorageV2", sku={"name": "Standard_LRS"})
    path = f"{_ACCOUNT}/blobServices/default/containers/assets"
    recorded.call("PUT", path, {"properties": {}}).raise_for_status()
    properties = recorded.call("GET", path).json()["properties"]
    assert properties.keys() == {
        *("defaultEncryptionScope", "deleted", "denyEncryptionScopeOverride", "hasImmutabilityPolicy", "hasLegalHold"),
        *("lastModifiedTime", "leaseState", "leaseStatus", "legalHold", "publicAccess", "remainingRetentionDays"),
    }
    recorded.call("PUT", path, {"properties": {"metadata": {"a": "b"}}}).raise_for_status()
    assert recorded.call("GET", path).json()["properties"]["metadata"] == {"a": "b"}


def test_a_clusters_id_and_type_are_in_akss_own_letter_case(recorded: ArmWorld) -> None:
    pool = {"name": "pool", "mode": "System", "count": 1, "vmSize": "Standard_DS2_v2"}
    properties = {"dnsPrefix": "recorded", "agentPoolProfiles": [pool]}
    answer = recorded.call("PUT", _CLUSTER, {"location": "eastus", "properties": properties}).json()
    spelt = (_CLUSTER.replace("resourceGroups", "resourcegroups"), "Microsoft.ContainerService/ManagedClusters")
    for cluster in (answer, recorded.call("GET", _CLUSTER).json()):
        assert (cluster["id"], cluster["type"]) == spelt
        assert "tags" not in cluster
    kubelet = answer["properties"]["identityProfile"]["kubeletidentity"]["resourceId"]
    assert kubelet.startswith(f"{SUBSCRIPTION}/resourcegroups/MC_recorded_recorded_eastus/providers/")


def test_a_secret_without_tags_has_no_tags_and_a_vault_has_none_in_it(world: ArmWorld) -> None:
    properties = {
        "sku": {"family": "A", "name": "standard"},
        "tenantId": world.cloud.tenant_id,
        "enableRbacAuthorization": True,
    }
    assert written(world, VAULT, properties)["tags"] == {}
    secret = world.call("PUT", f"{VAULT}/secrets/one", {"properties": {"value": "v"}}).json()
    assert secret.keys() == _TRACKED
