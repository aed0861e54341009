"""A request for each refusal of diagnostic settings and system topics that `COVERAGE.md` lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx

from localcloud.testing.arm import GROUP, VAULT, vault_body
from localcloud.testing.monitoring import (
    ALERTS,
    LOG_ACCOUNT,
    SETTING,
    TOPIC,
    WORKSPACE,
    alerts_body,
    make,
    make_destinations,
    setting_body,
    topic_body,
)
from tests.coverage.cloud import CoverageCloud

Provoke = Callable[[CoverageCloud], httpx.Response]


def _refused(path: str, body: dict[str, Any]) -> Provoke:
    """A PUT after everything that monitors the vault was made."""

    def provoke(cloud: CoverageCloud) -> httpx.Response:
        make(cloud)
        return cloud.call("PUT", path, body)

    return provoke


def _logs(**log: str) -> dict[str, Any]:
    return setting_body(logs=[{**log, "enabled": True}])


def _others_workspace(cloud: CoverageCloud) -> httpx.Response:
    make_destinations(cloud)
    somebody = cloud.principal(("Monitoring Contributor", VAULT))
    return cloud.call("PUT", SETTING, setting_body(), caller=somebody)


def _account_elsewhere(cloud: CoverageCloud) -> httpx.Response:
    make_destinations(cloud)
    cloud.resources.put({**(cloud.resources.get(LOG_ACCOUNT) or {}), "location": "westus"})
    return cloud.call("PUT", SETTING, setting_body(storageAccountId=LOG_ACCOUNT))


def _first_topic(path: str, body: dict[str, Any]) -> Provoke:
    """A PUT before the vault has a topic."""
    return lambda cloud: cloud.call("PUT", path, body)


def _workspaces_topic(cloud: CoverageCloud) -> httpx.Response:
    make_destinations(cloud)
    return cloud.call("PUT", TOPIC, topic_body(properties={"source": WORKSPACE}))


def _another_source(cloud: CoverageCloud) -> httpx.Response:
    make(cloud)
    other = f"{VAULT}-2"
    cloud.call("PUT", other, vault_body())
    return cloud.call("PUT", TOPIC, topic_body(properties={"source": other}))


def _alert(**alert: Any) -> dict[str, Any]:
    return alerts_body(destination={"endpointType": "MonitorAlert", "properties": {"severity": "Sev1", **alert}})


_NOWHERE: Final = f"{GROUP}/providers/Microsoft.Insights/actionGroups/nobody"
_BOTH: Final = [{"category": "AuditEvent", "enabled": True}, {"categoryGroup": "audit", "enabled": True}]
MONITORING_REFUSALS: Final[Mapping[str, Provoke]] = {
    "diagnostic setting without a destination": _refused(SETTING, setting_body(workspaceId=None)),
    "unknown category of a log": _refused(SETTING, _logs(category="Audit")),
    "unknown category group": _refused(SETTING, _logs(categoryGroup="everything")),
    "category and group in one setting": _refused(SETTING, setting_body(logs=_BOTH)),
    "unknown workspace": _refused(SETTING, setting_body(workspaceId=f"{WORKSPACE}-2")),
    "workspace of others": _others_workspace,
    "storage account of another region": _account_elsewhere,
    "destination used twice": _refused(f"{SETTING}-2", _logs(category="AuditEvent")),
    "diagnostic setting of another type": _refused(SETTING.replace(VAULT, LOG_ACCOUNT), setting_body()),
    "name of a system topic": _first_topic(f"{TOPIC}_2", topic_body()),
    "source that is not there": _first_topic(TOPIC, topic_body(properties={"source": f"{VAULT}-2"})),
    "source of another type": _workspaces_topic,
    "topic type of another source": _first_topic(
        TOPIC, topic_body(properties={"topicType": "Microsoft.Storage.StorageAccounts"})
    ),
    "topic in another region": _first_topic(TOPIC, topic_body(location="westus")),
    "second system topic of a source": _refused(f"{TOPIC}-2", topic_body()),
    "another source of a topic": _another_source,
    "name of an event subscription": _refused(f"{TOPIC}/eventSubscriptions/x", alerts_body()),
    "another destination of events": _refused(ALERTS, alerts_body(destination={"endpointType": "WebHook"})),
    "alert without a severity": _refused(ALERTS, _alert(severity=None)),
    "alert of another schema": _refused(ALERTS, alerts_body(eventDeliverySchema="EventGridSchema")),
    "unknown action group": _refused(ALERTS, _alert(actionGroups=[_NOWHERE])),
    "event type of another service": _refused(
        ALERTS, alerts_body(filter={"includedEventTypes": ["Microsoft.Storage.BlobCreated"]})
    ),
}
