"""What keeps a cluster from being moved, and what is said of the stack that has got it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from identity.settings import Settings
from ops.stack import splitting
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.splitting import Moved
from ops.stack.state import UNKNOWN
from tests.unit.components.world import SECOND_CLUSTER, hosted_cluster, settings

_URN = "urn:pulumi:dev::idstack::{}::{}"
_COMPONENT = "idstack:hypershift:HostedCluster"
_APPLICATION = "azuread:index/application:Application"
_ROLE = "azure-native:authorization:RoleAssignment"


def resource(name: str, token: str = _COMPONENT, stack: str = "dev", **more: Any) -> dict[str, Any]:
    return {"urn": _URN.format(token, name).replace(":dev:", f":{stack}:"), "type": token, **more}


def cluster(stack: str = "dev", *, name: str = "hc1", application: str = "/applications/1") -> list[dict[str, Any]]:
    """A cluster's component and two resources below it, as a state has them."""
    component = resource(name, stack=stack)
    child = resource(f"{name}-disk", _APPLICATION, stack, parent=component["urn"], id=application)
    return [component, child, resource(f"{name}-role", _ROLE, stack, parent=child["urn"], id="/roles/1")]


def step(operation: str, name: str, token: str, principal: str = "", *reasons: str) -> dict[str, Any]:
    inputs = {"principalId": principal, "scope": "/subscriptions/s"}
    urn = _URN.format(token, name)
    state = {"urn": urn, "type": token, "custom": not token.startswith("idstack:hypershift"), "inputs": inputs}
    return {"op": operation, "urn": urn, "newState": state, "replaceReasons": list(reasons)}


@dataclass
class FakeStack:
    """The engine of one stack, as far as a move asks it; `with_it` goes along with what is moved."""

    stack: str
    settings: Settings
    has: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)

    def resources(self) -> list[dict[str, Any]]:
        return self.has

    def state(self) -> dict[str, Any]:
        return {"version": 3, "deployment": {"resources": self.has}}

    def replace_state(self, state: dict[str, Any]) -> None:
        self.has = state["deployment"]["resources"]

    def planned(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def move(self, urn: str, stack: str) -> None:
        self.moved.append((urn, stack))
        self.has = [recorded for recorded in self.has if not recorded["urn"].rpartition("::")[2].startswith("hc1")]

    @property
    def engine(self) -> Engine:
        return cast(Engine, self)


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "settings_of", lambda engine: engine.settings)


def first(**changes: Any) -> FakeStack:
    """A stack whose configuration has another cluster left, and whose state has `hc1` as well."""
    has = [resource("dev", "pulumi:pulumi:Stack"), *cluster(), *cluster(name="hc2")]
    return FakeStack("dev", settings(**{"hostedClusters": [SECOND_CLUSTER], **changes}), has)


def second(**changes: Any) -> FakeStack:
    """The stack that gets the cluster."""
    shared = {"vault": None, "sharedStack": "organization/idstack/dev", "hostedClusters": [hosted_cluster()]}
    return FakeStack("hc1-dev", settings(**{**shared, **changes}))


def test_the_clusters_component_is_moved_with_all_below_it() -> None:
    source = first()

    assert splitting.move(source.engine, second().engine, "hc1") == Moved(3)
    assert source.moved == [(_URN.format(_COMPONENT, "hc1"), "hc1-dev")]


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (first(hostedClusters=[hosted_cluster()]), second(), "Pulumi.dev.yaml still has hc1; take it out of"),
        (first(), second(hostedClusters=[SECOND_CLUSTER]), "Pulumi.hc1-dev.yaml needs hc1, and no other"),
        (first(), second(sharedStack="organization/idstack/prod"), "needs idstack:sharedStack: "),
        (first(), second(resourceGroup="other"), "has the resourceGroup other; managed identities stay in"),
    ],
    ids=["still there", "another cluster", "another shared stack", "another group"],
)
def test_configurations_that_do_not_fit_are_named_and_nothing_moves(
    source: FakeStack, target: FakeStack, reason: str
) -> None:
    with pytest.raises(CommandError) as refused:
        splitting.move(source.engine, target.engine, "hc1")

    assert reason in refused.value.message
    assert source.moved == []


def test_a_stack_with_resources_gets_no_cluster() -> None:
    source, target = first(), second()
    target.has = [resource("hc1-dev", "pulumi:pulumi:Stack"), resource("hc9")]

    with pytest.raises(CommandError, match="hc1-dev has resources already"):
        splitting.move(source.engine, target.engine, "hc1")
    assert source.moved == []


def half_moved(**changes: Any) -> tuple[FakeStack, FakeStack]:
    """Both stacks as a kill between the engine's two writes leaves them."""
    source, target = first(), second()
    target.has = [resource("hc1-dev", "pulumi:pulumi:Stack", "hc1-dev"), *cluster("hc1-dev", **changes)]
    return source, target


def test_a_move_that_was_cut_off_is_finished_if_all_ids_are_equal() -> None:
    source, target = half_moved()

    assert splitting.move(source.engine, target.engine, "hc1") == Moved(3, was_begun=True)
    assert [recorded["urn"].rpartition("::")[2] for recorded in source.has] == ["dev", "hc2", "hc2-disk", "hc2-role"]
    assert len(target.has) == 4
    assert source.moved == []


def test_a_move_that_is_complete_is_none_the_second_time() -> None:
    source, target = half_moved()
    source.has = cluster(name="hc2")

    assert splitting.move(source.engine, target.engine, "hc1") == Moved(0, was_begun=True)
    assert source.has == cluster(name="hc2")


def test_what_the_second_stack_has_made_since_does_not_keep_a_move_from_its_end() -> None:
    source, target = half_moved()
    target.has.append(resource("hc1-gate", "type", "hc1-dev", parent=target.has[1]["urn"], id="gate"))

    assert splitting.move(source.engine, target.engine, "hc1").resources == 3


@pytest.mark.parametrize("lost", [False, True], ids=["another id", "missing"])
def test_states_that_contradict_each_other_are_refused_with_what_differs(lost: bool) -> None:
    source, target = half_moved(application="/applications/1" if lost else "/applications/2")
    if lost:
        del target.has[2:]

    with pytest.raises(CommandError) as refused:
        splitting.move(source.engine, target.engine, "hc1")

    assert "hc1 is in the states of both dev and hc1-dev, and they contradict each other" in refused.value.message
    assert f"\n    {_URN.format(_APPLICATION, 'hc1-disk')} (/applications/1)" in refused.value.message
    assert ("::hc1-role (/roles/1)" in refused.value.message) is lost
    assert len(source.has) == 7


def test_a_move_is_not_finished_for_configurations_that_do_not_fit() -> None:
    source, target = half_moved()
    source.settings = settings(hostedClusters=[hosted_cluster()])

    with pytest.raises(CommandError, match=r"Pulumi\.dev\.yaml still has hc1"):
        splitting.move(source.engine, target.engine, "hc1")
    assert len(source.has) == 7


def test_a_cluster_that_the_stack_does_not_have_is_named() -> None:
    with pytest.raises(CommandError, match="dev has no hosted cluster hc3"):
        splitting.move(first().engine, second().engine, "hc3")


def test_the_next_runs_updates_are_told() -> None:
    target = second()
    target.steps = [
        step("same", "hc1", _COMPONENT),
        step("update", "hc1-disk", _APPLICATION),
        step("create", "owner", "idstack:index:StackOwner"),
    ]

    assert splitting.changes(target.engine) == {"hc1-disk": "update"}


@pytest.mark.parametrize(
    ("principal", "reasons", "is_told"),
    [
        (UNKNOWN, ["principalId"], False),
        (UNKNOWN, ["principalId", "scope"], True),
        ("another", ["principalId"], True),
        (UNKNOWN, [], True),
    ],
)
def test_what_a_preview_alone_would_replace_is_no_harm(principal: str, reasons: list[str], is_told: bool) -> None:
    target = second()
    target.steps = [step("replace", "hc1-data-plane-disk-roles-managed", _ROLE, principal, *reasons)]

    try:
        told = bool(splitting.changes(target.engine))
    except CommandError:
        told = True

    assert told is is_told


@pytest.mark.parametrize("token", [_COMPONENT, "pulumi:providers:kubernetes"])
def test_what_is_made_in_the_state_alone_is_no_harm(token: str) -> None:
    target = second()
    target.steps = [step("create", "kubernetes", token)]

    assert splitting.changes(target.engine) == {"kubernetes": "create"}


@pytest.mark.parametrize("operation", ["create", "delete", "replace", "create-replacement"])
def test_a_next_run_that_would_harm_is_an_error(operation: str) -> None:
    target = second()
    target.steps = [step("update", "hc1-disk", _APPLICATION), step(operation, "hc1-disk-roles-managed", _ROLE)]

    with pytest.raises(CommandError) as refused:
        splitting.changes(target.engine)
    assert f"{operation} hc1-disk-roles-managed" in refused.value.message
    assert "hc1-disk\n" not in refused.value.message
