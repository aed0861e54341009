"""What monitors the stack's vault, made by somebody through ARM."""

from __future__ import annotations

from typing import Any, Final

from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

_INSIGHTS, _EVENT_GRID = "2021-05-01-preview", "2025-02-15"
_LOGS: Final = [{"categoryGroup": "audit", "enabled": True}]
_FILTER: Final = {
    "includedEventTypes": ["Microsoft.KeyVault.SecretExpired"],
    "isSubjectCaseSensitive": False,
    "subjectBeginsWith": "",
    "subjectEndsWith": "",
}
_RETRIES: Final = {"maxDeliveryAttempts": 30, "eventTimeToLiveInMinutes": 1440}


def make(stack: LocalStack) -> list[dict[str, Any]]:
    """Make all of it; each part as `test_import.py` describes a thing."""
    group, vault, somebody = _group(stack), stack.resource("vault-vault")["id"], OutOfBand(stack)
    setting = f"{vault}/providers/Microsoft.Insights/diagnosticSettings/by-hand"
    topic = f"{group}/Microsoft.EventGrid/systemTopics/by-hand"
    subscription = f"{topic}/eventSubscriptions/by-hand"
    workspace = {"workspaceId": f"{group}/Microsoft.OperationalInsights/workspaces/logs-local", "logs": _LOGS}
    source = {"source": vault, "topicType": "Microsoft.KeyVault.vaults"}
    alert = {"severity": "Sev2", "actionGroups": [f"{group}/Microsoft.Insights/actionGroups/on-call"]}
    schema = {"eventDeliverySchema": "CloudEventSchemaV1_0", "filter": _FILTER}
    destination = {"endpointType": "MonitorAlert", "properties": alert}
    somebody.arm("PUT", setting, _INSIGHTS, {"properties": workspace})
    somebody.arm("PUT", topic, _EVENT_GRID, {"location": "eastus", "properties": source})
    somebody.arm("PUT", subscription, _EVENT_GRID, {"properties": {**schema, "destination": destination}})
    here = {"resourceGroupName": "identity-local", "systemTopicName": "by-hand"}
    told = {"destination": {"endpointType": "MonitorAlert", **alert}, "retryPolicy": _RETRIES}
    return [
        _thing("monitor:DiagnosticSetting", setting, {"resourceUri": vault, "name": "by-hand", **workspace}),
        _thing("eventgrid:SystemTopic", topic, {**here, "location": "eastus", **source}),
        _thing(
            "eventgrid:SystemTopicEventSubscription",
            subscription,
            {**here, "eventSubscriptionName": "by-hand", **schema, **told},
        ),
    ]


def remove(stack: LocalStack) -> None:
    """Remove all of it."""
    vault, somebody = stack.resource("vault-vault")["id"], OutOfBand(stack)
    somebody.arm("DELETE", f"{vault}/providers/Microsoft.Insights/diagnosticSettings/by-hand", _INSIGHTS)
    somebody.arm("DELETE", f"{_group(stack)}/Microsoft.EventGrid/systemTopics/by-hand", _EVENT_GRID)


def _group(stack: LocalStack) -> str:
    return f"/subscriptions/{stack.environment.subscription_id}/resourceGroups/identity-local/providers"


def _thing(word: str, arm_id: str, inputs: dict[str, Any]) -> dict[str, Any]:
    name = f"by-hand-{word.rpartition(':')[2]}"
    return {"type": f"azure-native:{word}", "name": name, "id": arm_id, "inputs": inputs}
