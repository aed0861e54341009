"""What Azure Monitor is asked to do for the vault, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import ABSENT, SUBSCRIPTION, configuration, load, refusals

GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/logs/providers"
WORKSPACE = f"{GROUP}/Microsoft.OperationalInsights/workspaces/audit"
ACCOUNT = f"{GROUP}/Microsoft.Storage/storageAccounts/auditlogs"
ON_CALL = f"{GROUP}/Microsoft.Insights/actionGroups/on call"


def monitored(audit_log: Any = None, expiry_alerts: Any = None, **changes: Any) -> dict[str, Any]:
    wanted = {"auditLog": audit_log, "expiryAlerts": expiry_alerts}
    return configuration(monitoring={key: value for key, value in wanted.items() if value is not None}, **changes)


def test_nothing_is_monitored_unless_it_is_asked_for() -> None:
    assert load(configuration()).monitoring is None
    assert refusals(monitored()) == []


@pytest.mark.parametrize(
    "audit_log",
    [
        {"workspaceId": WORKSPACE},
        {"storageAccountId": ACCOUNT},
        {"workspaceId": WORKSPACE, "storageAccountId": ACCOUNT},
    ],
)
def test_the_audit_log_goes_to_a_workspace_a_storage_account_or_both(audit_log: dict[str, str]) -> None:
    assert refusals(monitored(audit_log)) == []


def test_an_audit_log_without_a_destination_is_refused() -> None:
    assert refusals(monitored({})) == [("monitoring.auditLog", "audit-log-destination-missing")]


def test_alerts_are_of_severity_one_unless_it_is_given() -> None:
    found = load(monitored(expiry_alerts={"actionGroupIds": [ON_CALL]})).monitoring

    assert found is not None
    assert found.expiry_alerts is not None
    assert (found.expiry_alerts.action_group_ids, found.expiry_alerts.severity) == ((ON_CALL,), "Sev1")
    wrong = {"actionGroupIds": [ON_CALL], "severity": "high"}
    assert refusals(monitored(expiry_alerts=wrong)) == [("monitoring.expiryAlerts.severity", "choice")]


def test_alerts_that_nobody_is_told_of_are_refused() -> None:
    assert refusals(monitored(expiry_alerts={"actionGroupIds": []})) == [
        ("monitoring.expiryAlerts.actionGroupIds", "action-group-missing")
    ]


@pytest.mark.parametrize(("lifetime", "before", "is_accepted"), [(60, 31, True), (60, 30, False), (20, 10, False)])
def test_alerts_come_after_the_renewal(lifetime: int, before: int, is_accepted: bool) -> None:
    credentials = {"lifetimeDays": lifetime, "renewBeforeDays": before}
    found = refusals(monitored(expiry_alerts={"actionGroupIds": [ON_CALL]}, credentials=credentials))

    assert found == ([] if is_accepted else [("credentials.renewBeforeDays", "expiry-alert-before-renewal")])
    assert refusals(monitored({"workspaceId": WORKSPACE}, credentials=credentials)) == []


def test_a_shared_vault_is_monitored_by_the_stack_that_has_it() -> None:
    shared = {"sharedStack": "organization/idstack/shared-dev", "vault": ABSENT}
    found = refusals(monitored({"workspaceId": WORKSPACE}, **shared))

    assert found == [("monitoring", "monitoring-without-vault")]
