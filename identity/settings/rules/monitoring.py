"""The rules of `monitoring`; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.settings.schema.invalid import apply
from identity.settings.schema.model import Settings
from identity.settings.schema.monitoring import AuditLogSettings, ExpiryAlertSettings
from identity.settings.schema.problems import ReportedPlace

# Key Vault always sends its event 30 days before the end (azure-docs `key-vault/general/event-grid-overview`).
_ALERT_BEFORE_DAYS: Final = 30


def validate_monitoring(settings: Settings, root: ReportedPlace) -> None:
    """Apply every rule to what Azure Monitor does for the vault."""
    monitoring, place = settings.monitoring, root / "monitoring"
    if monitoring is None:
        return
    apply((_vault_is_the_stacks_own,), settings, place)
    apply((_audit_log_goes_somewhere,), monitoring.audit_log, place / "auditLog")
    apply((_alerts_tell_somebody,), monitoring.expiry_alerts, place / "expiryAlerts")
    apply((_alerts_come_after_the_renewal,), settings, monitoring.expiry_alerts, root)


def _vault_is_the_stacks_own(settings: Settings, place: ReportedPlace) -> None:
    """A shared vault has one audit log and one system topic: those of the stack that has the vault."""
    if settings.vault is None:
        place.refuse(
            {},
            rule="monitoring-without-vault",
            accepted="nothing with sharedStack: the stack that has the vault monitors it",
            fix=f"{place.to_remove()}, and set it in the shared stack",
        )


def _audit_log_goes_somewhere(log: AuditLogSettings | None, place: ReportedPlace) -> None:
    """Azure refuses a diagnostic setting without a destination."""
    if log is not None and log.workspace_id is None and log.storage_account_id is None:
        place.refuse(
            {},
            rule="audit-log-destination-missing",
            accepted="workspaceId, storageAccountId, or both",
            fix=f"{(place / 'workspaceId').to_set('<resource id>')}, or {place.to_remove()}",
        )


def _alerts_tell_somebody(alerts: ExpiryAlertSettings | None, place: ReportedPlace) -> None:
    """Azure would raise alerts without a receiver."""
    if alerts is not None and not alerts.action_group_ids:
        at = place / "actionGroupIds"
        at.refuse(
            [],
            rule="action-group-missing",
            accepted="one action group or more",
            reason="it is empty",
            fix=f"{(at / 0).to_set('<resource id>')}, or {place.to_remove()}",
        )


def _alerts_come_after_the_renewal(settings: Settings, alerts: ExpiryAlertSettings | None, root: ReportedPlace) -> None:
    """An alert would precede each renewal in the last 30 days, and nobody would read them."""
    before = settings.credentials.renew_before_days
    if alerts is not None and before <= _ALERT_BEFORE_DAYS:
        place = root / "credentials" / "renewBeforeDays"
        place.refuse(
            before,
            rule="expiry-alert-before-renewal",
            accepted=f"more than {_ALERT_BEFORE_DAYS} with monitoring.expiryAlerts: Key Vault sends its event "
            f"{_ALERT_BEFORE_DAYS} days before the end, so each certificate would raise an alert before its renewal is "
            "due",
            fix=f"{place.to_set('<days>')}, or {(root / 'monitoring' / 'expiryAlerts').to_remove()}",
        )
