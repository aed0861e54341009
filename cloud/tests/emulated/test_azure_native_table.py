"""The table agrees with the installed SDK, and its replacement rules are the real provider's."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

from emulated.azure_native.rows import FunctionRow, ResourceRow
from emulated.azure_native.table import FUNCTIONS, RESOURCES
from emulated.sdk_types import properties


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
