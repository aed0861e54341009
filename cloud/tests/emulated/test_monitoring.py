"""What monitors a vault, at the emulated azure-native: unions, refresh, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulated.azure_native.provider import AzureNative
from localcloud.testing.plugin_calls import create, import_by_id, refresh, urn
from plugin import PluginError
from tests.emulated.monitoring import ACTION_GROUP, ALERTS, MONITORING, SETTING, WORKSPACE, monitoring_inputs

Unique = Callable[[str], str]


def test_the_destination_of_a_subscription_is_on_one_level(azure_native: AzureNative, unique: Unique) -> None:
    _, created = create(azure_native, ALERTS, monitoring_inputs(azure_native, ALERTS, unique))

    assert created.state["destination"] == {
        "endpointType": "MonitorAlert",
        "severity": "Sev1",
        "actionGroups": [ACTION_GROUP],
    }


@pytest.mark.parametrize("token", MONITORING)
def test_a_refresh_finds_what_was_made(azure_native: AzureNative, unique: Unique, token: str) -> None:
    inputs, created = create(azure_native, token, monitoring_inputs(azure_native, token, unique))
    found = refresh(azure_native, token, inputs, created)

    assert (found.inputs, found.state) == (inputs, created.state)


@pytest.mark.parametrize("token", MONITORING)
def test_what_is_imported_has_the_inputs_it_was_made_with(
    azure_native: AzureNative, unique: Unique, token: str
) -> None:
    inputs, created = create(azure_native, token, monitoring_inputs(azure_native, token, unique))
    found = import_by_id(azure_native, token, created.id)

    for name in set(inputs) - {"azureApiVersion", "filter"}:
        assert found.inputs[name] == inputs[name], name


def test_a_destination_of_no_known_type_is_refused(azure_native: AzureNative, unique: Unique) -> None:
    inputs = {**monitoring_inputs(azure_native, ALERTS, unique), "destination": {"endpointType": "Email"}}
    [failure] = azure_native.resource(ALERTS).check(urn(ALERTS), None, inputs).failures

    assert failure.reason.startswith("'destination' should name its type: one of AzureFunction, EventHub, ")


def test_a_destination_with_a_property_of_another_is_refused(azure_native: AzureNative, unique: Unique) -> None:
    wrong = {"endpointType": "MonitorAlert", "queueName": "q"}
    inputs = {**monitoring_inputs(azure_native, ALERTS, unique), "destination": wrong}
    [failure] = azure_native.resource(ALERTS).check(urn(ALERTS), None, inputs).failures

    assert failure.reason.startswith("'destination.queueName' is not a property of MonitorAlertEventSubscription")


def test_a_workspace_that_is_not_there_is_reported_in_arms_words(azure_native: AzureNative, unique: Unique) -> None:
    inputs = {**monitoring_inputs(azure_native, SETTING, unique), "workspaceId": f"{WORKSPACE}-2"}
    with pytest.raises(PluginError, match=r'Code="ResourceNotFound" .*workspaces/logs-local-2'):
        create(azure_native, SETTING, inputs)
