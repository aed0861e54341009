"""Microsoft.EventGrid: the system topic of a vault, and its subscriptions that raise alerts. No event is sent.

Sources: azure-docs `event-grid/{system-topics,event-schema-key-vault,security-authorization}` and
`event-grid/handle-key-vault-events-using-azure-monitor-alerts`, EventGrid.json 2025-02-15; messages in
TaoYang-Cloud/azure.policy.monitor issue 12 (a second topic) and azure-quickstart-templates issue 13688 (its source).
"""

from __future__ import annotations

import re
import uuid
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.insights import ACTION_GROUPS
from localcloud.azure.arm.network_rules import subscription_resources
from localcloud.azure.arm.resource_type import TRACKED, Call, ResourceType, WrittenType, enumerated
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.understood import ANY, Understood
from localcloud.core.store import Document

SYSTEM_TOPICS: Final = "Microsoft.EventGrid/systemTopics"
EVENT_SUBSCRIPTIONS: Final = f"{SYSTEM_TOPICS}/eventSubscriptions"
_VAULTS: Final = "Microsoft.KeyVault/vaults"
_VAULT_TOPIC: Final = "Microsoft.KeyVault.vaults"
_VAULT_EVENTS: Final = frozenset(
    f"Microsoft.KeyVault.{what}{event}"
    for what in ("Certificate", "Key", "Secret")
    for event in ("NewVersionCreated", "NearExpiry", "Expired")
) | {"Microsoft.KeyVault.VaultAccessPolicyChanged"}
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9-]{3,50}")
_SUBSCRIPTION_NAME: Final = re.compile(r"[a-zA-Z0-9-]{3,64}")
_SEVERITIES: Final = ("Sev0", "Sev1", "Sev2", "Sev3", "Sev4")
_SUBSCRIBE: Final = "Microsoft.EventGrid/eventSubscriptions/write"
# What Event Grid fills in.
_FILTER: Final = {"subjectBeginsWith": "", "subjectEndsWith": "", "isSubjectCaseSensitive": False}
_RETRIES: Final = {"maxDeliveryAttempts": 30, "eventTimeToLiveInMinutes": 1440}


class SystemTopics(WrittenType):
    """System topics of vaults: one for each vault, in its region, never of another vault."""

    name = SYSTEM_TOPICS
    reads = MappingProxyType(
        {"PUT": Understood.of(body={**TRACKED, "properties": dict.fromkeys(("source", "topicType"))})}
    )

    async def put(self, call: Call) -> Response:
        resource, current = self.envelope(call, tracked=True), call.current
        _check_name(_TOPIC_NAME, call.path.name, "system topic", "3-50")
        properties = call.properties
        source = self._source(call, str(properties.get("source") or ""))
        if str(properties.get("topicType") or "").lower() != _VAULT_TOPIC.lower():
            raise _invalid(
                f"The topic type '{properties.get('topicType')}' does not match the source '{source['id']}', whose "
                f"topic type is '{_VAULT_TOPIC}'."
            )
        if resource["location"] != source["location"]:
            raise _invalid(
                f"The location '{resource['location']}' of the system topic does not match the location "
                f"'{source['location']}' of its source."
            )
        if current is not None and current["properties"]["source"].lower() != source["id"].lower():
            raise _invalid("System topic source cannot be modified.")
        self._refuse_second(call, source)
        assigned = current["properties"] if current else {"metricResourceId": str(uuid.uuid4())}
        kept = {**assigned, **properties, "provisioningState": "Succeeded"}
        return self.written(call, {**resource, "properties": kept})

    def _source(self, call: Call, source: str) -> Document:
        vault = call.resources.get(source)
        if vault is None:
            raise _invalid(f"The source '{source}' of the system topic was not found.")
        if vault["type"] != _VAULTS:
            raise errors.not_emulated(f"{self.name} of a {vault['type']}")
        return vault

    def _refuse_second(self, call: Call, source: Document) -> None:
        for other in subscription_resources(call, self.name):
            is_other = other["id"].lower() != call.path.key
            if is_other and other["properties"]["source"].lower() == source["id"].lower():
                raise _invalid(
                    f"There is an existing tracked system topic for the given source {source['id']}. Only one system "
                    "topic is allowed per source."
                )


class EventSubscriptions(WrittenType):
    """Subscriptions of a vault's system topic that raise alerts of Azure Monitor."""

    name = EVENT_SUBSCRIPTIONS
    reads = MappingProxyType(
        {
            "PUT": Understood.of(
                body={
                    "properties": {
                        "eventDeliverySchema": None,
                        "filter": dict.fromkeys((*_FILTER, "includedEventTypes")),
                        "destination": {"endpointType": None, "properties": {ANY: None}},
                    }
                }
            )
        }
    )

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=False)
        _check_name(_SUBSCRIPTION_NAME, call.path.name, "event subscription", "3-64")
        properties = call.properties
        topic = call.resources.get(str(call.path.parent_id)) or {}
        call.require_linked(self.name, _SUBSCRIBE, [topic["properties"]["source"]])
        self._check_destination(call, properties.get("destination") or {})
        if not enumerated(properties.get("eventDeliverySchema"), ("CloudEventSchemaV1_0",)):
            raise _invalid("The destination MonitorAlert takes the event delivery schema CloudEventSchemaV1_0 only.")
        wanted = properties.get("filter") or {}
        if unknown := sorted({*(wanted.get("includedEventTypes") or ())} - _VAULT_EVENTS):
            raise _invalid(f"The event type '{unknown[0]}' is not an event type of the topic type '{_VAULT_TOPIC}'.")
        filled = {"topic": topic["id"], "filter": {**_FILTER, **wanted}, "retryPolicy": _RETRIES, "labels": []}
        return self.written(
            call, {**resource, "properties": {**properties, **filled, "provisioningState": "Succeeded"}}
        )

    def _check_destination(self, call: Call, destination: dict[str, Any]) -> None:
        if not enumerated(destination.get("endpointType"), ("MonitorAlert",)):
            raise errors.not_emulated(f"the destination {destination.get('endpointType')} of {self.name}")
        wanted = destination.get("properties") or {}
        if unknown := sorted(wanted.keys() - {"actionGroups", "description", "severity"}):
            raise errors.not_emulated(f"the property {unknown[0]} of MonitorAlert")
        if not enumerated(wanted.get("severity"), _SEVERITIES):
            raise _invalid(f"The severity of a MonitorAlert must be one of {', '.join(_SEVERITIES)}.")
        groups = wanted.get("actionGroups") or []
        call.require_linked(self.name, f"{ACTION_GROUPS}/write", groups)
        for group in groups:
            action_group = call.resources.get(group)
            if action_group is None or action_group["type"] != ACTION_GROUPS:
                raise _invalid(f"The action group '{group}' was not found.")


def _check_name(rule: re.Pattern[str], name: str, what: str, length: str) -> None:
    if not rule.fullmatch(name):
        raise _invalid(f"The name '{name}' of the {what} is not valid: {length} letters, digits and hyphens.")


def _invalid(message: str) -> ServiceError:
    """400 of Event Grid."""
    return ServiceError(400, "InvalidRequest", message)


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return SystemTopics(), EventSubscriptions()
