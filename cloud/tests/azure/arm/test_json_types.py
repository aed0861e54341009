"""A value of another JSON type is refused, wherever it is in a body that ARM takes."""

from __future__ import annotations

import copy
from collections.abc import ItemsView, Iterator
from pathlib import Path
from string import Template
from typing import Any, Final

import pytest
import yaml

from localcloud.azure.arm.api import _NAMESPACES
from localcloud.azure.arm.json_types import KNOWN
from localcloud.azure.arm.path import parse
from localcloud.azure.arm.resource_type import ResourceType
from localcloud.azure.shared.understood import ANY, Members
from localcloud.testing import arm, networks

_TEXT: Final = Template(Path(__file__).with_name("json_types.yaml").read_text(encoding="utf-8"))
_OTHERS: Final[tuple[object, ...]] = ("a", 7, True, ["a"], [{"name": "a"}], {}, {"a": "b"})
_FORMAT: Final = "InvalidRequestFormat"
_CONTENT: Final = "InvalidRequestContent"
_TWINS: Final = [{"name": "a"}, {"name": "A"}]
_WRITTEN: Final = [
    type_ for namespace in _NAMESPACES for type_ in namespace.types() if type_.reads_of("PUT") is not None
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[arm.ArmWorld]:
    """With one resource of each type that is written."""
    built = arm.ArmWorld(tmp_path_factory.mktemp("types"))
    built.put(f"{networks.NETWORK}/dnszones/example.com", "Microsoft.Network/dnszones", {"zoneType": "Public"})
    for path, body in _all(built):
        for _ in range(2):
            answer = built.call("PUT", path, body)
            assert answer.is_success, (path, answer.text)
    yield built
    built.store.close()


def _all(world: arm.ArmWorld) -> ItemsView[str, dict[str, Any]]:
    """Id and body of one resource of each type."""
    places = {"subscription": arm.SUBSCRIPTION, "group": arm.GROUP, "infra": networks.MANAGED}
    text = _TEXT.substitute(places, network=networks.NETWORK, deployer=world.deployer.object_id)
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return found.items()


def test_a_value_of_another_type_is_refused_and_changes_nothing(world: arm.ArmWorld) -> None:
    taken = []
    for path, body in _all(world):
        before = world.call("GET", path).json()
        for place, value in _places(body):
            for other in _OTHERS:
                if type(other) is not type(value):
                    answer = world.call("PUT", path, _with(body, place, other))
                    if not (400 <= answer.status_code < 500 or "NotEmulated" in answer.text):
                        taken.append((path, place, other, answer.status_code))
        assert world.call("GET", path).json() == before
    assert taken == []


def test_every_type_that_is_written_is_tried(world: arm.ArmWorld) -> None:
    tried = {parse(path, "PUT").type.lower() for path, _ in _all(world)}

    assert tried == {type_.name.lower() for type_ in _WRITTEN}


@pytest.mark.parametrize("type_", _WRITTEN, ids=[type_.name for type_ in _WRITTEN])
def test_the_type_of_every_member_is_known(type_: ResourceType) -> None:
    for operation in ("PUT", "PATCH"):
        if (reads := type_.reads_of(operation)) is not None:
            # The permissions of a role are an array, which it checks itself, those of an access policy an object.
            assert set(_names(reads.body)) - {ANY, "permissions"} <= KNOWN.keys()


def _names(members: Members | None) -> Iterator[str]:
    for name, below in (members or {}).items():
        yield name
        yield from _names(below)


def _places(value: Any, *path: str | int) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value in a body, and where it is."""
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, *path, key)


def _with(body: dict[str, Any], place: tuple[str | int, ...], value: object) -> dict[str, Any]:
    changed: Any = copy.deepcopy(body)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return dict(changed)


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        (networks.SECURITY_GROUP, networks.in_eastus(securityRules={}), _FORMAT, "securityRules: a JSON array"),
        (networks.BALANCER, networks.balancer_body(probes=_TWINS), _FORMAT, "two of them have the name 'a'"),
        (networks.ADDRESS, {"location": "eastus", "tags": ["a"]}, _CONTENT, "tags: a JSON object"),
        (arm.VAULT, {"properties": {"networkAcls": {"ipRules": [7]}}}, _CONTENT, "ipRules.0: a JSON object"),
    ],
)
def test_the_refusal_names_the_member(
    world: arm.ArmWorld, path: str, body: dict[str, Any], code: str, message: str
) -> None:
    refused = arm.error(world.call("PUT", path, body))

    assert refused[:2] == (400, code)
    assert message in refused[2]
