"""The rules of `monitoring`; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.settings.schema.model import Settings
from identity.settings.schema.problems import Place, ProblemReport, to_remove, to_set

# Key Vault always sends its event 30 days before the end (azure-docs `key-vault/general/event-grid-overview`).
_ALERT_BEFORE_DAYS: Final = 30
_AT: Final[Place] = ("monitoring",)


def monitored_vault_is_the_stacks_own(settings: Settings, report: ProblemReport) -> None:
    """A shared vault has one audit log and one system topic: those of the stack that has the vault."""
    if settings.monitoring is not None and settings.vault is None:
        report.refuse(
            _AT,
            {},
            rule="monitoring-without-vault",
            accepted="nothing with sharedStack: the stack that has the vault monitors it",
            fix=f"{to_remove(_AT)}, and set it in the shared stack",
        )


def audit_log_goes_somewhere(settings: Settings, report: ProblemReport) -> None:
    """Azure refuses a diagnostic setting without a destination."""
    log = None if settings.monitoring is None else settings.monitoring.audit_log
    if log is not None and log.workspace_id is None and log.storage_account_id is None:
        place = (*_AT, "auditLog")
        report.refuse(
            place,
            {},
            rule="audit-log-destination-missing",
            accepted="workspaceId, storageAccountId, or both",
            fix=f"{to_set((*place, 'workspaceId'), '<resource id>')}, or {to_remove(place)}",
        )


def expiry_alerts_tell_somebody(settings: Settings, report: ProblemReport) -> None:
    """Azure would raise alerts without a receiver."""
    alerts = None if settings.monitoring is None else settings.monitoring.expiry_alerts
    if alerts is not None and not alerts.action_group_ids:
        place = (*_AT, "expiryAlerts", "actionGroupIds")
        report.refuse(
            place,
            [],
            rule="action-group-missing",
            accepted="one action group or more",
            fix=f"{to_set((*place, 0), '<resource id>')}, or {to_remove((*_AT, 'expiryAlerts'))}",
        )


def expiry_alerts_come_after_the_renewal(settings: Settings, report: ProblemReport) -> None:
    """An alert would precede each renewal in the last 30 days, and nobody would read them."""
    alerts = None if settings.monitoring is None else settings.monitoring.expiry_alerts
    before = settings.credentials.renew_before_days
    if alerts is not None and before <= _ALERT_BEFORE_DAYS:
        place = ("credentials", "renewBeforeDays")
        report.refuse(
            place,
            before,
            rule="expiry-alert-before-renewal",
            accepted=f"more than {_ALERT_BEFORE_DAYS} with monitoring.expiryAlerts: Key Vault sends its event "
            f"{_ALERT_BEFORE_DAYS} days before the end, so each certificate would raise an alert before its renewal is "
            "due",
            fix=f"{to_set(place, '<days>')}, or {to_remove((*_AT, 'expiryAlerts'))}",
        )
