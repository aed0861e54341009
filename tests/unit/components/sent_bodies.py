"""The requests with which the emulated azure-native makes and changes what the program registers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from localcloud.testing.plugins import AZURE_NATIVE as RESOURCES
from localcloud.testing.plugins import ArmResource, ArmSession, ResourceRow
from plugin import Props
from plugin.values import from_struct
from tests.unit.components import world
from tests.unit.components.configurations import AZURE, CONFIGURATIONS
from tests.unit.components.program import Program

SHAPES: Final = {**CONFIGURATIONS, **AZURE}
Request = dict[str, Any]
_NOTHING: Final[Mapping[str, Any]] = {}


def sent_bodies(program: Program) -> list[Request]:
    """The requests of all shapes, for a creation and an update; equal ones are there once.

    `type`, `url`, `apiVersion` and `body` are what is sent; `parameters` are those of the path.
    """
    found: dict[str, Request] = {}
    invokes = {**world.lookups(), "azure-native:keyvault:getManagedHsm": {}}
    # It enforces policies, with the plugin of each shape.
    invokes["azure-native:containerservice:getManagedCluster"] |= {"networkProfile": {"networkDataplane": "cilium"}}
    for changes in SHAPES.values():
        recorder = program(**changes, invokes=invokes)
        for resource in recorder.registered:
            if resource.type in RESOURCES:
                for request in requests(RESOURCES[resource.type], from_struct(resource.request.object)):
                    found[json.dumps(request, sort_keys=True)] = request
    return list(found.values())


def requests(row: ResourceRow, inputs: Props) -> Iterator[Request]:
    """What is sent to create a resource with these inputs, and to update it without any change."""
    arm = _RecordingArm()
    session = cast("Callable[[], ArmSession]", lambda: _Session(world.SUBSCRIPTION, arm))
    resource = ArmResource(row, session)
    checked = resource.check("", None, inputs)
    assert not checked.failures, checked.failures
    created = resource.create("", checked.inputs, preview=False)
    # As ARM would answer, which fills in what an update sends again.
    state = {**row.defaults, **created.state}
    resource.update("", created.id, checked.inputs, state, checked.inputs, preview=False)
    values = {name: value for name, value in inputs.items() if name in row.parameters}
    for url, version, body in arm.put_bodies:
        yield {
            "type": row.token,
            "url": url,
            "apiVersion": version,
            "parameters": {"subscriptionId": world.SUBSCRIPTION, **values},
            "body": body,
        }


@dataclass
class _RecordingArm:
    """ARM that takes everything, and answers it."""

    put_bodies: list[tuple[str, str, Any]] = field(default_factory=list)

    def refuse_existing(self, resource_id: str, api_version: str) -> None:
        """It never exists."""

    def find(self, resource_id: str, api_version: str) -> Mapping[str, Any]:
        """The resource group's location."""
        return {"location": "eastus"}

    def get(self, resource_id: str, api_version: str) -> Mapping[str, Any]:
        """What was sent."""
        return self.put_bodies[-1][2] if self.put_bodies else _NOTHING

    def put(self, resource_id: str, api_version: str, body: Any) -> Mapping[str, Any]:
        """Record, and answer it."""
        self.put_bodies.append((resource_id, api_version, json.loads(json.dumps(body))))
        return cast("Mapping[str, Any]", body)


@dataclass(frozen=True)
class _Session:
    subscription_id: str
    arm: _RecordingArm
