"""Microsoft.Insights: diagnostic settings of vaults, and action groups. No log is written, and no action is taken.

Sources: azure-docs `key-vault/general/logging` (categories) and `azure-monitor/essentials/diagnostic-settings` (region
of a storage account); messages in Azure/bicep-registry-modules issue 3407 (a sink used twice), azurerm issue 2985
(category), azure-rest-api-specs issue 22719 (categories and groups); linked actions in MicrosoftDocs/azure-docs issue
80159 and JimGBritt/AzurePolicy issue 17.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.path import parse
from localcloud.azure.arm.resource_type import Call, ResourceType, SeededType, WrittenType
from localcloud.azure.arm.seeded import WORKSPACES
from localcloud.azure.blob.accounts import ACCOUNTS
from localcloud.azure.resource_store import public
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.understood import Understood
from localcloud.core.store import Document

ACTION_GROUPS: Final = "Microsoft.Insights/actionGroups"
DIAGNOSTIC_SETTINGS: Final = "Microsoft.Insights/diagnosticSettings"
_VAULTS: Final = "Microsoft.KeyVault/vaults"
# By destination: the type, and the action that the writer needs there.
_SINKS: Final[Mapping[str, tuple[str, str]]] = {
    "workspaceId": (WORKSPACES, f"{WORKSPACES}/sharedKeys/action"),
    "storageAccountId": (ACCOUNTS, f"{ACCOUNTS}/listKeys/action"),
}
_LOG: Final = dict.fromkeys(("category", "categoryGroup", "enabled"))
# What a vault logs, by category group.
_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "audit": frozenset({"AuditEvent"}),
    "allLogs": frozenset({"AuditEvent", "AzurePolicyEvaluationDetails"}),
}


class DiagnosticSettings(WrittenType):
    """Diagnostic settings of a vault. They are deleted with it; Azure keeps them for a vault of the same name."""

    name = DIAGNOSTIC_SETTINGS
    reads = MappingProxyType({"PUT": Understood.of(body={"properties": {**dict.fromkeys(_SINKS), "logs": _LOG}})})
    extension = True

    async def put(self, call: Call) -> Response:
        vault = self._vault(call)
        properties = call.properties
        sinks = {name: str(properties[name]) for name in _SINKS if properties.get(name)}
        if not sinks:
            raise errors.bad_request("At least one data sink needs to be specified.")
        categories = _categories(properties.get("logs") or [])
        for name, sink in sinks.items():
            self._check_sink(call, vault, name, sink)
        self._refuse_second(call, vault, {sink.lower(): sink for sink in sinks.values()}, categories)
        setting = {"id": f"{vault['id']}/providers/{self.name}/{call.path.name}", "name": call.path.name}
        written = call.resources.put({**setting, "type": self.name, "properties": properties})
        return JSONResponse(public(written))

    def _vault(self, call: Call) -> Document:
        scope = str(call.path.scope)
        vault = call.resources.get(scope)
        if vault is None or vault["type"] != _VAULTS:
            raise errors.not_emulated(f"{self.name} of {scope}")
        return vault

    def _check_sink(self, call: Call, vault: Document, name: str, sink: str) -> None:
        type_name, action = _SINKS[name]
        call.require_linked(self.name, action, [sink])
        destination = call.resources.get(sink)
        if destination is None or destination["type"] != type_name:
            raise errors.resource_not_found(parse(sink, "GET"), type_name)
        if type_name == ACCOUNTS and destination["location"] != vault["location"]:
            raise errors.bad_request(
                f"Resource '{vault['id']}' is in region '{vault['location']}' and resource '{destination['id']}' is in "
                f"region '{destination['location']}'. They must be in the same region."
            )

    def _refuse_second(self, call: Call, vault: Document, sinks: Mapping[str, str], categories: frozenset[str]) -> None:
        for other in call.resources.below(vault["id"], self.name):
            properties = other["properties"]
            taken = sinks.keys() & {str(properties[name]).lower() for name in _SINKS if properties.get(name)}
            shared = sorted(categories & _categories(properties["logs"]))
            if other["id"].lower() != call.path.key and taken and shared:
                raise ServiceError(
                    409,
                    "Conflict",
                    f"Data sink '{sinks[min(taken)]}' is already used in diagnostic setting '{other['name']}' for "
                    f"category '{shared[0]}'. Data sinks can't be reused in different settings on the same category "
                    "for the same resource.",
                )


def _categories(logs: list[dict[str, Any]]) -> frozenset[str]:
    """The categories that are logged; raises 400."""
    named = {name for log in logs for name in ("category", "categoryGroup") if log.get(name) is not None}
    if len(named) > 1:
        raise errors.bad_request("Diagnostic setting does not support mix of log category and log category group.")
    return frozenset(category for log in logs for category in _of_one(log) if log.get("enabled"))


def _of_one(log: Mapping[str, Any]) -> Iterator[str]:
    if log.get("category") is not None:
        if log["category"] not in _GROUPS["allLogs"]:
            raise errors.bad_request(f"Category '{log['category']}' is not supported.")
        yield log["category"]
        return
    if log.get("categoryGroup") not in _GROUPS:
        raise errors.bad_request(f"Category group '{log.get('categoryGroup')}' is not supported.")
    yield from _GROUPS[log["categoryGroup"]]


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (DiagnosticSettings(), SeededType(ACTION_GROUPS))
