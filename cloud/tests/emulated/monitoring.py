"""Inputs of a vault, and of the types that monitor it, as the program gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from emulated.azure_native.provider import AzureNative
from localcloud.core.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from localcloud.testing.plugin_calls import create
from plugin import Props

SETTING: Final = "azure-native:monitor:DiagnosticSetting"
TOPIC: Final = "azure-native:eventgrid:SystemTopic"
ALERTS: Final = "azure-native:eventgrid:SystemTopicEventSubscription"
MONITORING: Final = (SETTING, TOPIC, ALERTS)

# Both are in `emulated/seed.yaml`.
_GROUP: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/identity-local"
WORKSPACE: Final = f"{_GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs-local"
ACTION_GROUP: Final = f"{_GROUP}/providers/Microsoft.Insights/actionGroups/on-call"


def vault_inputs(name: str, **properties: Any) -> Props:
    wanted = {
        "tenantId": LOCAL_TENANT_ID,
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        **properties,
    }
    return {"resourceGroupName": "identity-local", "vaultName": name, "location": "eastus", "properties": wanted}


def monitoring_inputs(plugin: AzureNative, token: str, unique: Callable[[str], str]) -> Props:
    """The least that the type needs; the vault, and the topic of a subscription, are made on the way."""
    here: Props = {"resourceGroupName": "identity-local"}
    if token == ALERTS:
        topic, _ = create(plugin, TOPIC, monitoring_inputs(plugin, TOPIC, unique))
        alert = {"endpointType": "MonitorAlert", "severity": "Sev1", "actionGroups": [ACTION_GROUP]}
        return {
            **here,
            "systemTopicName": topic["systemTopicName"],
            "eventSubscriptionName": "expiry",
            "destination": alert,
            "eventDeliverySchema": "CloudEventSchemaV1_0",
            "filter": {"includedEventTypes": ["Microsoft.KeyVault.SecretNearExpiry"]},
        }
    _, vault = create(plugin, "azure-native:keyvault:Vault", vault_inputs(unique("kv")))
    if token == SETTING:
        logs = [{"categoryGroup": "audit", "enabled": True}]
        return {"resourceUri": vault.id, "name": "audit", "workspaceId": WORKSPACE, "logs": logs}
    source = {"source": vault.id, "topicType": "Microsoft.KeyVault.vaults"}
    return {**here, "systemTopicName": unique("topic"), "location": "eastus", **source}
