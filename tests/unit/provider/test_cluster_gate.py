"""`ClusterGateResource` against an API server with access reviews, and what it logs meanwhile."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from identity.aks.api_server import ApiServer
from identity.aks.exec_user import exec_user
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.login import Login
from identity.login_kinds import Flavour, LoginKind
from localcloud.testing.hosts import Serve
from plugin import UNKNOWN, PluginError, Props, Secret, unwrap
from plugin.servicer import logging_to
from provider.sign_in_gate import ClusterGateResource
from tests.unit.access_world import CLASSES, TENANT, FakeApiServer, program, skeleton

URN = "urn:pulumi:dev::idstack::idstack:index:ClusterGate::cluster-access-gate"
KINDS = [f"{CLASSES}/secretproviderclasses"]
GIVEN: Props = {
    "clusterId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/mgmt",
    "clusterUid": "f00d",
    "hasAzureRbac": False,
    "kinds": KINDS,
    "timeoutSeconds": 900,
}

resource = ClusterGateResource()


class World:
    """A cluster, its kubeconfig, and what was logged while it was waited for; each pause may change something."""

    def __init__(self, api: FakeApiServer, server: str) -> None:
        self.api = api
        self.logged: list[str] = []
        self.pauses: list[float] = []
        skeletal = Kubeconfig.parse(base64.b64decode(skeleton(server)).decode(), "test")
        user = exec_user(Login(kind=LoginKind.ARM, tenant_id=TENANT), Flavour.IDSTACK)
        self.kubeconfig = skeletal.only(skeletal.chosen(), user=user).to_json()

    def inputs(self, **changes: Any) -> Props:
        """Checked inputs."""
        given = {**GIVEN, "kubeconfig": self.kubeconfig}
        checked = resource.check(URN, None, {**given, **changes})
        assert not checked.failures
        return checked.inputs

    def create(self, **changes: Any) -> Props:
        with logging_to(self.logged.append):
            return resource.create(URN, self.inputs(**changes), preview=False).state

    def update(self, state: Props, *, preview: bool = False, **changes: Any) -> Props:
        with logging_to(self.logged.append):
            return resource.update(URN, "id", self.inputs(), state, self.inputs(**changes), preview=preview)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.api.denied, self.api.absent = (set(), self.api.absent) if self.api.denied else (set(), set())


@pytest.fixture
def world(serve_plain: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin')}:/usr/bin:/bin")
    api = FakeApiServer()
    built = World(api, serve_plain(api.app()))
    now = iter(range(0, 10_000, 100))
    waiting = partial(ApiServer.wait_for, clock=lambda: next(now))
    monkeypatch.setattr(ApiServer, "wait_for", lambda self, *given, **options: waiting(self, *given, **options))
    monkeypatch.setattr("provider.sign_in_gate.pause", built.sleep)
    return built


def test_it_waits_for_permissions_then_kinds_and_says_so(world: World) -> None:
    world.api.denied, world.api.absent = {"create namespaces"}, {CLASSES}

    state = world.create()

    assert [line.partition(": ")[2] for line in world.logged] == [
        f"permissions: create namespaces; kinds: secretproviderclasses.{CLASSES}",
        f"kinds: secretproviderclasses.{CLASSES}",
    ]
    assert state["openedAt"]
    assert state["kubeconfig"] == Secret(world.kubeconfig)
    world.api.absent, paused = {CLASSES}, len(world.pauses)
    world.create(kinds=[])
    assert len(world.pauses) == paused, "no kind is needed"


def test_what_is_missing_at_the_end_is_named_with_its_fix(world: World) -> None:
    world.api.absent = {CLASSES}
    with pytest.raises(PluginError) as refused:
        world.create(timeoutSeconds=1)
    assert f"still lacks after 1 s: kinds: secretproviderclasses.{CLASSES}. " in str(refused.value)
    assert "secretproviderclasses come with the add-on azure-keyvault-secrets-provider" in str(refused.value)
    assert str(refused.value).endswith("The cluster stays; bring the stack up again when that is fixed")


def test_where_azure_rbac_decides_the_fix_is_a_role_assignment(world: World) -> None:
    world.api.denied = {"create namespaces"}
    with pytest.raises(PluginError, match=r"`az role assignment create .*managedClusters/mgmt .*deployer-object-id"):
        world.create(timeoutSeconds=1, hasAzureRbac=True)


def test_a_program_that_gets_no_token_is_not_waited_for(world: World, tmp_path: Path) -> None:
    program(tmp_path / "bin", code=1, error="idstack: the certificate 9F expired")
    with pytest.raises(PluginError, match="the certificate 9F expired"):
        world.create()
    assert world.pauses == []


def test_a_preview_waits_for_nothing_and_may_know_nothing(world: World) -> None:
    created = resource.create(URN, world.inputs(clusterUid=UNKNOWN, kubeconfig=UNKNOWN), preview=True)

    assert (created.id, created.state["openedAt"]) == ("", UNKNOWN)
    assert unwrap(created.state["kubeconfig"]) is UNKNOWN
    assert world.api.reviews == []


def test_another_cluster_under_the_same_name_is_waited_for_again(world: World) -> None:
    state = world.create()
    world.api.reviews.clear()

    assert world.update(state, preview=True, clusterUid="beef")["openedAt"] is UNKNOWN
    assert world.api.reviews == []
    assert world.update(state, timeoutSeconds=5)["openedAt"] == state["openedAt"]
    assert world.api.reviews == [], "the gate is open"
    world.update(state, clusterUid="beef")
    assert world.api.reviews


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clusterId", ""),
        ("clusterUid", None),
        ("hasAzureRbac", "yes"),
        ("kubeconfig", 1),
        ("kinds", "a/b/c"),
        ("kinds", [1]),
        ("timeoutSeconds", 0),
    ],
)
def test_an_input_that_is_none_is_refused_by_name(world: World, name: str, value: Any) -> None:
    given = {**GIVEN, "kubeconfig": world.kubeconfig}

    checked = resource.check(URN, None, {**given, name: value})

    assert [failure.property for failure in checked.failures] == [name]
    assert world.kubeconfig not in checked.failures[0].reason


def test_every_change_is_one_in_place(world: World) -> None:
    diff = resource.diff(URN, "id", world.inputs(), {}, world.inputs(clusterUid="beef", kinds=[]))
    assert diff.changes
    assert not any(change.replace for change in diff.changes.values())
