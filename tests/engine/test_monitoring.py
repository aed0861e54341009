"""What monitors the vault comes, changes and goes, is repaired, and touches nothing else of the stack."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.changing import bring_up, refusal
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

pytestmark = pytest.mark.nightly

COMPONENT, SETTING, TOPIC, ALERTS = "monitoring", "monitoring-audit-log", "monitoring-topic", "monitoring-expiry-alerts"


def test_what_monitors_the_vault_is_made_changed_repaired_and_deleted(small: LocalStack) -> None:
    """On with one destination, drift and its repair, changed to others, a refusal of Azure's, and off again."""
    group = f"/subscriptions/{small.environment.subscription_id}/resourceGroups/identity-local/providers"
    workspace = f"{group}/Microsoft.OperationalInsights/workspaces/logs-local"
    account = f"{group}/Microsoft.Storage/storageAccounts/backuplocal"
    alerts = {"actionGroupIds": [f"{group}/Microsoft.Insights/actionGroups/on-call"]}

    def monitoring(workspace_id: str, **more: Any) -> dict[str, Any]:
        return {"auditLog": {"workspaceId": workspace_id, **more}, "expiryAlerts": alerts}

    with small.configured(monitoring=monitoring(workspace)):
        added = bring_up(small)
        first = small.resource(SETTING)
        _change_behind_the_stack(small)
        drifted = small.idstack("preview", "--refresh", "--diff", "--expect-no-changes", check=False)
        small.up("--refresh")
        repaired = small.pulumi("preview", "--refresh", "--expect-no-changes").stdout
        alerts["severity"] = "Sev0"  # type: ignore[assignment]
        with small.configured(monitoring=monitoring(workspace, storageAccountId=account)):
            changed = bring_up(small)
            second, told = small.resource(SETTING), small.resource(ALERTS)
        unknown = refusal(small, monitoring=monitoring(f"{workspace}-2"))
    removed = bring_up(small)

    assert added.names("create") == {COMPONENT, SETTING, TOPIC, ALERTS}
    assert added.names("update", "replace", "delete") == set()
    assert first["outputs"]["workspaceId"] == workspace
    assert drifted.returncode != 0
    assert {name for name in (SETTING, ALERTS) if name in drifted.stdout} == {SETTING, ALERTS}
    assert "unchanged" in repaired
    assert changed.names("update") == {SETTING, ALERTS}
    assert changed.names("create", "replace", "delete") == set()
    assert (second["id"], second["outputs"]["storageAccountId"]) == (first["id"], account)
    assert told["outputs"]["destination"]["severity"] == "Sev0"
    assert "The Resource 'Microsoft.OperationalInsights/workspaces/logs-local-2' under resource group" in unknown
    assert removed.names("delete") == {COMPONENT, SETTING, TOPIC, ALERTS}
    assert removed.names("create", "update", "replace") == set()
    assert small.preview() == {}


def _change_behind_the_stack(stack: LocalStack) -> None:
    """Somebody switches the log off and deletes the subscription."""
    somebody, setting = OutOfBand(stack), stack.resource(SETTING)
    logs = [{"categoryGroup": "audit", "enabled": False}]
    body = {"properties": {"workspaceId": setting["outputs"]["workspaceId"], "logs": logs}}
    somebody.arm("PUT", setting["id"], "2021-05-01-preview", body)
    somebody.arm("DELETE", stack.resource(ALERTS)["id"], "2025-02-15")
