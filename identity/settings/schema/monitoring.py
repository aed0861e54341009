"""The keys of what Azure Monitor does for the stack's vault: its audit log, and alerts before a credential expires."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from identity.settings.schema import arm_ids
from identity.settings.schema.base import Model


class AuditLogSettings(Model):
    """Where the vault's audit log goes: who has read or written which secret, and who was refused."""

    workspace_id: arm_ids.WorkspaceId | None = Field(
        None, description="Log Analytics workspace, which exists already, by its resource id."
    )
    storage_account_id: arm_ids.StorageAccountId | None = Field(
        None, description="Storage account, which exists already in the vault's region, by its resource id."
    )


class ExpiryAlertSettings(Model):
    """Alerts of Azure Monitor when a secret of the vault has 30 days left, and when it has expired."""

    action_group_ids: tuple[arm_ids.ActionGroupId, ...] = Field(
        description="Action groups that are notified, which exist already, by their resource ids."
    )
    severity: Literal["Sev0", "Sev1", "Sev2", "Sev3", "Sev4"] = Field(
        "Sev1", description="Severity of the alerts; `Sev0` is critical."
    )


class MonitoringSettings(Model):
    """What Azure Monitor does for the vault; each part is on if it is given."""

    audit_log: AuditLogSettings | None = Field(
        None, description="The vault's audit log is kept; without it Azure keeps none."
    )
    expiry_alerts: ExpiryAlertSettings | None = Field(
        None,
        description="Azure Monitor alerts about secrets that were not renewed, even if nobody runs `idstack`.",
    )
