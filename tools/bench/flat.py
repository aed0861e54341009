"""Records what our program registers, for the flat script that is its peer (`tools/bench/flat_program.py`).

The source is the engine's own log of its protocol. It has the stack's secrets in clear text, so it is for the local
cloud alone, in a private directory that the benchmark deletes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from identity.resource_types import OWN

RECORDING: Final = "BENCH_RECORDING"
"""Environment variable with the path of the recording."""

# What an argument is: a constant, an output of another resource, or a value made of other resources' outputs.
CONSTANT: Final = "constant"
OUTPUT: Final = "output"
DERIVED: Final = "derived"

# sdk/go/common/resource/properties.go
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
STACK_TYPE: Final = "pulumi:pulumi:Stack"
# Options of a registration under the names that `pulumi.ResourceOptions` gives them. Paths are given as they came.
_OPTIONS: Final = {
    "protect": "protect",
    "deleteBeforeReplace": "delete_before_replace",
    "ignoreChanges": "ignore_changes",
    "replaceOnChanges": "replace_on_changes",
    "additionalSecretOutputs": "additional_secret_outputs",
}


def recording(log: Path) -> list[dict[str, Any]]:
    """The registrations in a log that PULUMI_DEBUG_GRPC wrote, each after its dependencies."""
    calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    made = {call["response"]["urn"]: call for call in _completed(calls, "RegisterResource")}
    outputs = {
        call["request"]["urn"]: call["request"].get("outputs", {})
        for call in _completed(calls, "RegisterResourceOutputs")
    }
    rows = [
        _row(urn, call, outputs.get(urn, {}), made)
        for urn, call in made.items()
        if call["request"]["type"] != STACK_TYPE
    ]
    [stack] = (urn for urn, call in made.items() if call["request"]["type"] == STACK_TYPE)
    exported = {name: _argument(value, [], made) for name, value in outputs[stack].items()}
    return [*rows, {"type": STACK_TYPE, "outputs": exported}]


def _completed(calls: list[dict[str, Any]], method: str) -> Iterator[dict[str, Any]]:
    name = f"/pulumirpc.ResourceMonitor/{method}"
    return (call for call in calls if call["method"] == name and call["progress"] == "response_completed")


def _row(urn: str, call: Mapping[str, Any], outputs: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    request = call["request"]
    is_top = made[request["parent"]]["request"]["type"] == STACK_TYPE
    of_properties = {
        name: dependency.get("urns", []) for name, dependency in request.get("propertyDependencies", {}).items()
    }
    # On the wire the inputs of a provider are strings, whatever their type.
    values = {"true": True, "false": False} if request["type"].startswith("pulumi:providers:") else {}
    implied = {owner for owners in of_properties.values() for owner in owners}
    return {
        "urn": urn,
        "type": request["type"],
        "name": request["name"],
        "custom": request.get("custom", False),
        "parent": request["parent"],
        "dependsOn": [dependency for dependency in request.get("dependencies", []) if dependency not in implied],
        # Children inherit them.
        "providers": [provider.rpartition("::")[0] for provider in request.get("providers", {}).values()]
        if is_top
        else [],
        "options": {ours: request[theirs] for theirs, ours in _OPTIONS.items() if theirs in request},
        "inputs": {
            name: _argument(values.get(str(value), value), of_properties.get(name, []), made)
            for name, value in request["object"].items()
        },
        "outputs": {name: _argument(value, [], made) for name, value in outputs.items()},
    }


def _argument(value: Any, owners: list[str], made: Mapping[str, Any]) -> dict[str, Any]:
    plain, is_secret = _plain(value)
    if not owners:
        return {CONSTANT: plain, "secret": is_secret}
    for owner in owners:
        response = made[owner]["response"]
        if plain == response.get("id"):
            return {OUTPUT: "id", "of": owner}
        for name, output in response["object"].items():
            if _plain(output)[0] == plain and not isinstance(plain, int):
                is_own = made[owner]["request"]["type"].startswith(OWN)
                return {OUTPUT: name if is_own else _snake_case(name), "of": owner}
    return {DERIVED: plain, "of": owners, "secret": is_secret}


def _plain(value: Any) -> tuple[Any, bool]:
    """A value of the wire without its secret marks, and whether there was one."""
    if isinstance(value, Mapping):
        if value.get(_SIGNATURE) == _SECRET:
            return _plain(value["value"])[0], True
        items = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, (item, _) in items.items()}, any(mark for _, mark in items.values())
    if isinstance(value, list):
        listed = [_plain(item) for item in value]
        return [item for item, _ in listed], any(mark for _, mark in listed)
    return value, False


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
