"""What Azure Monitor does for the stack's vault: it keeps the audit log, and alerts before a credential expires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_azure_native import eventgrid, monitor

from components.azure.vault import Vault
from identity.naming import expiry_alerts_name, vault_topic_name
from identity.settings import MonitoringSettings, Settings
from identity.settings.schema.monitoring import AuditLogSettings, ExpiryAlertSettings

# azure-docs `event-grid/event-schema-key-vault`: the current version of a secret has 30 days left, or none.
_EVENT_TYPES: Final = ("Microsoft.KeyVault.SecretNearExpiry", "Microsoft.KeyVault.SecretExpired")
_TOPIC_TYPE: Final = "Microsoft.KeyVault.vaults"
# Every request to the vault: of Key Vault it is the category AuditEvent (azure-docs `key-vault/general/logging`).
_AUDIT: Final = "audit"
_AUDIT_LOG_NAME: Final = "idstack-audit"


@dataclass(frozen=True, kw_only=True)
class VaultMonitoringArgs:
    """Inputs of `VaultMonitoring`. `monitoring` is `settings.monitoring`; `vault` is what it is about."""

    settings: Settings
    monitoring: MonitoringSettings
    vault: Vault


class VaultMonitoring(pulumi.ComponentResource):
    """A diagnostic setting on the vault, and its Event Grid system topic with a subscription that raises alerts.

    Both are optional.
    """

    def __init__(self, name: str, args: VaultMonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:VaultMonitoring", name, None, opts)
        self._name, self._args = name, args
        if args.monitoring.audit_log is not None:
            self._keep_audit_log(args.monitoring.audit_log)
        if args.monitoring.expiry_alerts is not None:
            self._alert(args.monitoring.expiry_alerts)
        self.register_outputs({})

    def _keep_audit_log(self, log: AuditLogSettings) -> None:
        monitor.DiagnosticSetting(
            f"{self._name}-audit-log",
            name=_AUDIT_LOG_NAME,
            resource_uri=self._args.vault.vault_id,
            workspace_id=log.workspace_id,
            storage_account_id=log.storage_account_id,
            logs=[monitor.DiagnosticsLogSettingsArgs(category_group=_AUDIT, enabled=True)],
            opts=self._after_the_vault(),
        )

    def _alert(self, alerts: ExpiryAlertSettings) -> None:
        settings, vault = self._args.settings, self._args.vault
        topic_name = vault_topic_name(vault.vault_name)
        topic = eventgrid.SystemTopic(
            f"{self._name}-topic",
            system_topic_name=topic_name,
            resource_group_name=settings.resource_group,
            location=settings.location,
            tags=settings.tags,
            source=vault.vault_id,
            topic_type=_TOPIC_TYPE,
            opts=self._after_the_vault(),
        )
        eventgrid.SystemTopicEventSubscription(
            f"{self._name}-expiry-alerts",
            event_subscription_name=expiry_alerts_name(vault.vault_name),
            system_topic_name=topic_name,
            resource_group_name=settings.resource_group,
            destination=eventgrid.MonitorAlertEventSubscriptionDestinationArgs(
                endpoint_type="MonitorAlert",
                severity=alerts.severity,
                action_groups=list(alerts.action_group_ids),
                description=f"A credential in {vault.vault_name} expires: `idstack status` says which one.",
            ),
            # Alerts take no other schema (azure-docs `event-grid/handle-key-vault-events-using-azure-monitor-alerts`).
            event_delivery_schema=eventgrid.EventDeliverySchema.CLOUD_EVENT_SCHEMA_V1_0,
            filter=eventgrid.EventSubscriptionFilterArgs(included_event_types=list(_EVENT_TYPES)),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[topic]),
        )

    def _after_the_vault(self) -> pulumi.ResourceOptions:
        # The vault's id is known before the vault is there.
        return pulumi.ResourceOptions(parent=self, depends_on=[self._args.vault])
