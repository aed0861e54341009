"""Inputs are held to the argument types of the installed SDK."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi_azure_native import keyvault

from emulated.sdk_types import problems, properties, required
from plugin import UNKNOWN, Secret

_GOOD: dict[str, Any] = {
    "resourceGroupName": "identity-local",
    "vaultName": "kv-idstack-local",
    "tags": {"owner": "team"},
    "properties": {
        "tenantId": "10ca1000-0000-4000-8000-000000000001",
        "sku": {"family": "A", "name": "standard"},
        "softDeleteRetentionInDays": 90,
        "enablePurgeProtection": True,
        "networkAcls": {"ipRules": [{"value": "192.0.2.1"}]},
    },
}


def _with(change: dict[str, Any]) -> dict[str, Any]:
    return {**_GOOD, "properties": {**_GOOD["properties"], **change}}


def test_good_arguments_have_no_problem() -> None:
    assert list(problems(keyvault.VaultArgs, _GOOD)) == []


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"vaultName": "x", "properties": _GOOD["properties"]}, "missing required property 'resourceGroupName'"),
        (_with({"tenantId": None}), "missing required property 'properties.tenantId'"),
        (_with({"sku": {"family": "A"}}), "missing required property 'properties.sku.name'"),
        (
            _with({"enableRbacAuthorisation": True}),
            "'properties.enableRbacAuthorisation' is not a property of VaultPropertiesArgs in the installed SDK; "
            "did you mean 'enableRbacAuthorization'?",
        ),
        (
            _with({"softDeleteRetentionInDays": "90"}),
            "'properties.softDeleteRetentionInDays' should be of type 'integer'",
        ),
        (_with({"softDeleteRetentionInDays": 7.5}), "'properties.softDeleteRetentionInDays' must be an integer"),
        (_with({"softDeleteRetentionInDays": True}), "should be of type 'integer' but got a boolean"),
        (_with({"enablePurgeProtection": 1}), "should be of type 'boolean' but got a number"),
        (_with({"sku": "standard"}), "'properties.sku' should be of type 'object' but got a string"),
        (_with({"sku": {"family": "A", "name": "gold"}}), "'properties.sku.name' should be one of standard, premium"),
        (_with({"networkAcls": {"ipRules": {}}}), "'properties.networkAcls.ipRules' should be of type 'array'"),
        (
            _with({"networkAcls": {"ipRules": [{}]}}),
            "missing required property 'properties.networkAcls.ipRules[0].value'",
        ),
        ({**_GOOD, "tags": {"n": 1}}, "'tags.n' should be of type 'string' but got a number"),
    ],
)
def test_each_wrong_argument_is_named(inputs: dict[str, Any], problem: str) -> None:
    found = list(problems(keyvault.VaultArgs, inputs))
    assert len(found) == 1
    assert problem in found[0]


def test_unknown_values_are_not_checked() -> None:
    assert list(problems(keyvault.VaultArgs, {**_GOOD, "properties": UNKNOWN})) == []
    assert list(problems(keyvault.VaultArgs, _with({"sku": UNKNOWN, "tenantId": UNKNOWN}))) == []


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
