"""The explicit providers of Azure and Entra ID."""

from __future__ import annotations

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import SUBSCRIPTION, TENANT

AZURE = "pulumi:providers:azure-native"
ENTRA = "pulumi:providers:azuread"


def test_tenant_subscription_and_cloud_are_pinned(stack: RecordingMonitor) -> None:
    azure, entra = stack.one(AZURE, "azure").inputs, stack.one(ENTRA, "entra").inputs

    assert (azure["tenantId"], azure["subscriptionId"], azure["environment"]) == (TENANT, SUBSCRIPTION, "public")
    assert (entra["tenantId"], entra["environment"]) == (TENANT, "public")


def test_another_cloud_is_named_as_the_providers_name_it(program: Program) -> None:
    recorder = program(cloud="AzureUSGovernmentCloud", hostedClusters=[])

    assert recorder.one(AZURE).inputs["environment"] == "usgovernment"
    assert recorder.one(ENTRA).inputs["environment"] == "usgovernment"
