"""The rows of the vault's monitoring: a diagnostic setting, a system topic of Event Grid and its subscription.

Sources: `x-ms-mutability` of `location` in EventGrid.json 2025-02-15 (TrackedResource) and
diagnosticsSettings_API.json 2021-05-01-preview, where nothing has any. A changed source is an update, which Event Grid
refuses.
"""

from __future__ import annotations

from typing import Final

from emulated.azure_native.rows import IN_A_GROUP, ResourceRow

_EVENT_GRID: Final = "2025-02-15"
_TOPICS: Final = f"{IN_A_GROUP}/providers/Microsoft.EventGrid/systemTopics/{{systemTopicName}}"

MONITORING_RESOURCES: Final = (
    ResourceRow(
        token="azure-native:monitor:DiagnosticSetting",
        api_version="2021-05-01-preview",
        path="/{resourceUri}/providers/Microsoft.Insights/diagnosticSettings/{name}",
    ),
    ResourceRow(
        token="azure-native:eventgrid:SystemTopic",
        api_version=_EVENT_GRID,
        path=_TOPICS,
        force_new=frozenset({"location"}),
    ),
    ResourceRow(
        token="azure-native:eventgrid:SystemTopicEventSubscription",
        api_version=_EVENT_GRID,
        path=f"{_TOPICS}/eventSubscriptions/{{eventSubscriptionName}}",
    ),
)
