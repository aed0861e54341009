"""What monitors the vault: nothing, unless the settings ask for it, and then exactly that."""

from __future__ import annotations

from typing import Any

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import GROUPS, VAULT

SETTING = "azure-native:monitor:DiagnosticSetting"
TOPIC = "azure-native:eventgrid:SystemTopic"
ALERTS = "azure-native:eventgrid:SystemTopicEventSubscription"
WORKSPACE = f"{GROUPS}/logs/providers/Microsoft.OperationalInsights/workspaces/audit"
ACCOUNT = f"{GROUPS}/logs/providers/Microsoft.Storage/storageAccounts/auditlogs"
ON_CALL = f"{GROUPS}/logs/providers/Microsoft.Insights/actionGroups/on-call"


def built(program: Program, **monitoring: Any) -> RecordingMonitor:
    return program(hostedClusters=[], monitoring=monitoring)


def types(recorder: RecordingMonitor) -> set[str]:
    return {resource.type for resource in recorder.registered} & {SETTING, TOPIC, ALERTS}


def test_nothing_monitors_the_vault_unless_it_is_asked_for(program: Program) -> None:
    assert types(program(hostedClusters=[])) == types(built(program)) == set()


def test_the_audit_log_goes_where_the_settings_say(program: Program) -> None:
    recorder = built(program, auditLog={"workspaceId": WORKSPACE})

    assert types(recorder) == {SETTING}
    assert recorder.one(SETTING, "monitoring-audit-log").inputs == {
        "name": "idstack-audit",
        "resourceUri": VAULT,
        "workspaceId": WORKSPACE,
        "logs": [{"categoryGroup": "audit", "enabled": True}],
    }
    both = built(program, auditLog={"workspaceId": WORKSPACE, "storageAccountId": ACCOUNT})
    assert both.one(SETTING).inputs["storageAccountId"] == ACCOUNT


def test_alerts_are_told_to_the_action_groups_of_the_settings(program: Program) -> None:
    recorder = built(program, expiryAlerts={"actionGroupIds": [ON_CALL], "severity": "Sev0"})

    assert types(recorder) == {TOPIC, ALERTS}
    assert recorder.one(TOPIC, "monitoring-topic").inputs == {
        "systemTopicName": "kv-idstack-dev-events",
        "resourceGroupName": "identity-dev",
        "location": "eastus",
        "tags": {"team": "identity"},
        "source": VAULT,
        "topicType": "Microsoft.KeyVault.vaults",
    }
    assert recorder.one(ALERTS, "monitoring-expiry-alerts").inputs == {
        "eventSubscriptionName": "kv-idstack-dev-expiry",
        "systemTopicName": "kv-idstack-dev-events",
        "resourceGroupName": "identity-dev",
        "destination": {
            "endpointType": "MonitorAlert",
            "severity": "Sev0",
            "actionGroups": [ON_CALL],
            "description": "A credential in kv-idstack-dev expires: `idstack status` says which one.",
        },
        "eventDeliverySchema": "CloudEventSchemaV1_0",
        "filter": {
            "includedEventTypes": ["Microsoft.KeyVault.SecretNearExpiry", "Microsoft.KeyVault.SecretExpired"],
            "isSubjectCaseSensitive": False,
        },
    }


def test_the_vault_is_there_first_and_the_topic_before_its_subscription(program: Program) -> None:
    recorder = built(program, auditLog={"workspaceId": WORKSPACE}, expiryAlerts={"actionGroupIds": [ON_CALL]})
    vault = recorder.one("azure-native:keyvault:Vault").urn
    topic = recorder.one(TOPIC)

    assert vault in recorder.one(SETTING).request.dependencies
    assert vault in topic.request.dependencies
    assert topic.urn in recorder.one(ALERTS).request.dependencies
    assert {resource.request.protect for resource in (recorder.one(SETTING), topic, recorder.one(ALERTS))} == {False}
