"""What monitors the vault of `arm_world`: ids, and bodies that ARM takes."""

from __future__ import annotations

from typing import Any, Final

from localcloud.testing.arm import GROUP, VAULT, ArmWorld

WORKSPACE: Final = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs-local"
LOG_ACCOUNT: Final = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/auditlogs"
ACTION_GROUP: Final = f"{GROUP}/providers/Microsoft.Insights/actionGroups/on-call"
SETTING: Final = f"{VAULT}/providers/Microsoft.Insights/diagnosticSettings/idstack-audit"
TOPIC: Final = f"{GROUP}/providers/Microsoft.EventGrid/systemTopics/kv-idstack-local-events"
ALERTS: Final = f"{TOPIC}/eventSubscriptions/kv-idstack-local-expiry"


def make_destinations(world: ArmWorld) -> None:
    """What exists already: a workspace, a storage account and an action group."""
    for resource_id, type_name in (
        (WORKSPACE, "Microsoft.OperationalInsights/workspaces"),
        (LOG_ACCOUNT, "Microsoft.Storage/storageAccounts"),
        (ACTION_GROUP, "Microsoft.Insights/actionGroups"),
    ):
        world.put(resource_id, type_name, {"provisioningState": "Succeeded"})


def setting_body(**properties: Any) -> dict[str, Any]:
    """A diagnostic setting; a property given as None is left out."""
    wanted = {"workspaceId": WORKSPACE, "logs": [{"categoryGroup": "audit", "enabled": True}], **properties}
    return {"properties": {name: value for name, value in wanted.items() if value is not None}}


def topic_body(**changes: Any) -> dict[str, Any]:
    """A system topic of the vault."""
    properties = {"source": VAULT, "topicType": "Microsoft.KeyVault.vaults", **changes.pop("properties", {})}
    return {"location": "eastus", "properties": properties, **changes}


def alerts_body(**properties: Any) -> dict[str, Any]:
    """A subscription that raises alerts."""
    alert = {"severity": "Sev1", "actionGroups": [ACTION_GROUP], "description": "A credential expires."}
    return {
        "properties": {
            "destination": {"endpointType": "MonitorAlert", "properties": alert},
            "eventDeliverySchema": "CloudEventSchemaV1_0",
            "filter": {"includedEventTypes": ["Microsoft.KeyVault.SecretNearExpiry"]},
            **properties,
        }
    }


def make(world: ArmWorld) -> None:
    """All of it, beside a vault that is there."""
    make_destinations(world)
    for path, body in ((SETTING, setting_body()), (TOPIC, topic_body()), (ALERTS, alerts_body())):
        answer = world.call("PUT", path, body)
        assert answer.status_code in {200, 201}, answer.text
