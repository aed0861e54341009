"""Values between the program's shape and ARM's."""

from __future__ import annotations

from emulated.azure_native import projection
from emulated.azure_native.table import FUNCTIONS, RESOURCES
from plugin import UNKNOWN, Secret

_SECRET = RESOURCES["azure-native:keyvault:Secret"]
_CREDENTIAL = RESOURCES["azure-native:managedidentity:FederatedIdentityCredential"]
_VAULT = RESOURCES["azure-native:keyvault:Vault"]
_CLUSTER = RESOURCES["azure-native:containerservice:ManagedCluster"]
_ACCOUNT = RESOURCES["azure-native:storage:StorageAccount"]


def test_a_secrets_dates_get_arms_names_and_its_value_is_sent_in_clear() -> None:
    inputs = {
        "resourceGroupName": "g",
        "vaultName": "v",
        "secretName": "s",
        "azureApiVersion": "2024-11-01",
        "tags": {"a": "b"},
        "properties": {"value": Secret("x"), "attributes": {"enabled": True, "notBefore": 1, "expires": 2}},
    }
    assert projection.request_body(_SECRET, inputs) == {
        "tags": {"a": "b"},
        "properties": {"value": "x", "attributes": {"enabled": True, "nbf": 1, "exp": 2}},
    }


def test_flattened_arguments_go_into_properties() -> None:
    inputs = {
        "resourceGroupName": "g",
        "resourceName": "i",
        "federatedIdentityCredentialResourceName": "c",
        "issuer": "https://issuer",
        "subject": "s",
        "audiences": ["openshift"],
    }
    assert projection.request_body(_CREDENTIAL, inputs) == {
        "properties": {"issuer": "https://issuer", "subject": "s", "audiences": ["openshift"]}
    }


def test_the_identity_and_sku_of_a_flattened_type_stay_beside_properties() -> None:
    identity, sku = {"type": "SystemAssigned"}, {"name": "Base", "tier": "Free"}
    inputs = {"resourceGroupName": "g", "resourceName": "c", "identity": identity, "sku": sku, "dnsPrefix": "p"}
    body = {"identity": identity, "sku": sku, "properties": {"dnsPrefix": "p"}}
    assert projection.request_body(_CLUSTER, inputs) == body


def test_what_the_service_sets_in_a_map_entry_is_not_an_input() -> None:
    given = {"enabled": True, "config": {"rotationPollInterval": "2m"}}
    state = {"addonProfiles": {"azureKeyvaultSecretsProvider": {**given, "identity": {"clientId": "c"}}}}
    assert projection.writable(_CLUSTER, state) == {"addonProfiles": {"azureKeyvaultSecretsProvider": given}}


def test_a_response_is_shown_as_the_sdk_flattens_it_at_every_level() -> None:
    response = {
        "id": "/vnet",
        "name": "vnet",
        "type": "Microsoft.Network/virtualNetworks",
        "unheardOf": 1,
        "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"id": "/vnet/a", "name": "a", "properties": {"addressPrefix": "10.0.0.0/24"}}],
        },
    }
    outputs = projection.outputs(FUNCTIONS["azure-native:network:getVirtualNetwork"].outputs, response)
    assert outputs == {
        "id": "/vnet",
        "name": "vnet",
        "type": "Microsoft.Network/virtualNetworks",
        "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"id": "/vnet/a", "name": "a", "addressPrefix": "10.0.0.0/24"}],
    }


def test_a_preview_knows_what_is_given_and_no_more() -> None:
    preview = projection.preview(
        _SECRET.outputs, {"tags": {"a": "b"}, "secretName": "s", "properties": {"value": Secret("x")}}
    )
    assert preview["tags"] == {"a": "b"}
    assert preview["name"] is UNKNOWN
    assert preview["properties"]["value"] == Secret("x")
    assert preview["properties"]["secretUri"] is UNKNOWN
    assert "secretName" not in preview


def test_drift_reaches_the_inputs_and_service_defaults_do_not() -> None:
    inputs = {"vaultName": "v", "properties": {"enabled": True, "value": Secret("x")}, "tags": {"a": "b"}}
    old = {"properties": {"enabled": True, "contentType": "t"}, "tags": {"a": "b"}}
    new = {"properties": {"enabled": False, "contentType": "t", "notes": "by hand"}, "tags": {"a": "c"}}
    assert projection.merge_drift(inputs, old, new) == {
        "vaultName": "v",
        "properties": {"enabled": False, "value": Secret("x"), "notes": "by hand"},
        "tags": {"a": "c"},
    }


def test_what_was_removed_leaves_the_inputs() -> None:
    assert projection.merge_drift({"tags": {"a": "b"}, "x": 1}, {"tags": {"a": "b"}}, {}) == {"x": 1}


def test_a_wholly_secret_input_stays_secret_when_it_drifts() -> None:
    merged = projection.merge_drift({"tags": Secret({"a": "b"})}, {"tags": {"a": "b"}}, {"tags": {"a": "c"}})
    assert merged == {"tags": Secret({"a": "c"})}


def test_import_makes_inputs_of_what_can_be_written() -> None:
    state = {
        "name": "v",
        "location": "eastus",
        "tags": {},
        "properties": {"tenantId": "t", "vaultUri": "https://v/", "accessPolicies": [], "sku": {"name": "standard"}},
    }
    path_values = {"resourceGroupName": "g", "vaultName": "v"}
    assert projection.imported_inputs(_VAULT, path_values, state) == {
        "resourceGroupName": "g",
        "vaultName": "v",
        "location": "eastus",
        "properties": {"tenantId": "t", "sku": {"name": "standard"}},
    }


def test_an_accounts_firewall_and_https_get_arms_names_and_come_back() -> None:
    rules = {"defaultAction": "Deny", "ipRules": [{"iPAddressOrRange": "203.0.113.0/24"}]}
    inputs = {"resourceGroupName": "g", "accountName": "a", "enableHttpsTrafficOnly": True, "networkRuleSet": rules}
    acls = {"defaultAction": "Deny", "ipRules": [{"value": "203.0.113.0/24"}]}
    body = projection.request_body(_ACCOUNT, inputs)
    assert body == {"properties": {"supportsHttpsTrafficOnly": True, "networkAcls": acls}}
    outputs = {"enableHttpsTrafficOnly": True, "networkRuleSet": rules}
    assert projection.outputs(_ACCOUNT.outputs, body) == outputs
    assert projection.writable(_ACCOUNT, outputs) == outputs
    assert projection.outputs(FUNCTIONS["azure-native:storage:getStorageAccount"].outputs, body) == outputs


def test_attached_identities_are_a_list_here_and_an_object_there() -> None:
    identity = {"type": "UserAssigned", "userAssignedIdentities": ["/b", "/a"]}
    inputs = {"resourceGroupName": "g", "resourceName": "c", "identity": identity}
    body = projection.request_body(_CLUSTER, inputs)
    assert body == {"identity": {"type": "UserAssigned", "userAssignedIdentities": {"/b": {}, "/a": {}}}}
    found = {"identity": {"type": "UserAssigned", "userAssignedIdentities": {"/b": {"clientId": "c"}, "/a": {}}}}
    outputs = projection.outputs(_CLUSTER.outputs, found)
    assert outputs == found
    assert projection.writable(_CLUSTER, outputs) == {
        "identity": {"type": "UserAssigned", "userAssignedIdentities": ["/a", "/b"]}
    }
    assert projection.preview(_CLUSTER.outputs, inputs)["identity"]["userAssignedIdentities"] is UNKNOWN
