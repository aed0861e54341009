"""Values between the program's shape and ARM's."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi_azure_native import keyvault

from emulated.azure_native import projection
from emulated.azure_native.table import FUNCTIONS, RESOURCES, FunctionRow, ResourceRow
from emulated.sdk_types import problems, properties, required
from plugin import UNKNOWN, Secret

# The table agrees with the installed SDK, and its replacement rules are the real provider's.


@pytest.mark.parametrize("row", RESOURCES.values(), ids=lambda row: row.type_name)
def test_a_resource_row_is_what_the_sdk_registers(row: ResourceRow) -> None:
    assert row.outputs.pulumi_type == row.token  # type: ignore[attr-defined]
    assert f"Uses Azure REST API version {row.api_version}." in inspect.getsource(row.outputs)
    assert {*row.parameters, *row.patterns} <= set(properties(row.arguments))
    for path in row.force_new:
        name, _, inner = path.partition(".")
        shape = properties(row.arguments)[name]
        assert not inner or inner in properties(shape.type), path


def test_an_argument_in_a_profile_replaces_and_its_neighbours_do_not() -> None:
    row = RESOURCES["azure-native:containerservice:ManagedCluster"]
    paths = ("networkProfile.podCidr", "networkProfile.serviceCidrs", "linuxProfile.ssh.publicKeys[0].keyData")
    assert [path for path in paths if row.replaces(path)] == list(paths)
    others = ("networkProfile", "networkProfile.loadBalancerSku", "agentPoolProfiles[0].vmSize", "agentPoolProfiles")
    assert not [path for path in others if row.replaces(path)]


def test_what_comes_or_goes_inside_an_argument_that_replaces_does_not() -> None:
    row = RESOURCES["azure-native:containerservice:ManagedCluster"]
    assert row.replaces("linuxProfile", "add")
    assert row.replaces("networkProfile.podCidr", "delete")
    assert not row.replaces("linuxProfile.ssh", "add")
    assert not row.replaces("linuxProfile.ssh.publicKeys[1]", "add")
    assert not row.replaces("networkProfile.serviceCidrs[0]", "update")
    assert not row.replaces("networkProfile.serviceCidrs[1]", "delete")


@pytest.mark.parametrize("row", FUNCTIONS.values(), ids=lambda row: row.type_name)
def test_a_function_row_is_what_the_sdk_calls(row: FunctionRow) -> None:
    module = importlib.import_module(f"pulumi_azure_native.{row.module_name}")
    snake_case = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", row.type_name)
    function = getattr(module, snake_case)
    assert f"'{row.token}'" in inspect.getsource(function)
    assert f"Uses Azure REST API version {row.api_version}." in (inspect.getdoc(function) or "")
    arguments = re.findall(r"__args__\['(\w+)'\]", inspect.getsource(function))
    assert set(row.parameters) <= set(arguments)
    assert properties(row.outputs)


def test_an_id_is_built_from_the_inputs() -> None:
    row = RESOURCES["azure-native:authorization:RoleAssignment"]
    inputs = {"scope": "/subscriptions/s/resourceGroups/g/", "roleAssignmentName": "n"}
    assert row.resource_id("ignored", inputs) == (
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Authorization/roleAssignments/n"
    )


# Inputs are held to the argument types of the installed SDK.

_TABLES: Any = yaml.safe_load(Path(__file__).with_name("projection.yaml").read_text(encoding="utf-8"))
_GOOD: dict[str, Any] = _TABLES["good"]


def _problems(change: dict[str, Any]) -> list[str]:
    """Of the good arguments with this change; one of `properties` replaces single members."""
    within = change.get("properties", {})
    inside = within if within is UNKNOWN else {**_GOOD["properties"], **within}
    return list(problems(keyvault.VaultArgs, {**_GOOD, **change, "properties": inside}))


@pytest.mark.parametrize(("change", "problem"), _TABLES["problems"])
def test_each_wrong_argument_is_named(change: dict[str, Any], problem: str) -> None:
    [found] = _problems(change)
    assert problem in found


@pytest.mark.parametrize("change", [{}, {"properties": UNKNOWN}, {"properties": {"sku": UNKNOWN, "tenantId": UNKNOWN}}])
def test_good_arguments_and_unknown_values_have_no_problem(change: dict[str, Any]) -> None:
    assert _problems(change) == []


def test_a_secret_is_checked_by_its_value_and_never_shown() -> None:
    arguments = {
        "resourceGroupName": "g",
        "vaultName": "v",
        "properties": {"value": Secret({"marker": "s3cr3t"}), "contentType": Secret("text/plain")},
    }
    found = list(problems(keyvault.SecretArgs, arguments))
    assert found == ["'properties.value' should be of type 'string' but got an object"]


def test_the_outputs_of_a_resource_are_its_classs_own() -> None:
    assert set(properties(keyvault.Secret)) == {"azureApiVersion", "location", "name", "properties", "tags", "type"}
    assert properties(keyvault.Secret)["properties"].type.__name__ == "SecretPropertiesResponse"


def test_required_arguments_are_those_without_a_default() -> None:
    assert set(required(keyvault.SecretArgs)) == {"properties", "resourceGroupName", "vaultName"}


_SECRET = RESOURCES["azure-native:keyvault:Secret"]
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


@pytest.mark.parametrize("case", _TABLES["requests"], ids=lambda case: case["resource"])
def test_flattened_arguments_go_into_properties_and_others_stay_beside_it(case: dict[str, Any]) -> None:
    assert projection.request_body(RESOURCES[f"azure-native:{case['resource']}"], case["inputs"]) == case["body"]


@pytest.mark.parametrize(("token", "inputs", "path"), _TABLES["misplaced"])
def test_an_input_that_a_request_has_elsewhere_is_named(token: str, inputs: dict[str, Any], path: str | None) -> None:
    shapes = properties(RESOURCES[f"azure-native:{token}"].arguments)

    found = [place for name in inputs for place in projection.misplaced(shapes[name], inputs[name], name)]

    assert found == ([] if path is None else [path])


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
    add_ons = {"addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": True}}}
    profile = {"enabled": True, "config": UNKNOWN, "identity": UNKNOWN}
    assert projection.preview(_CLUSTER.outputs, add_ons)["addonProfiles"] == {"azureKeyvaultSecretsProvider": profile}


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
