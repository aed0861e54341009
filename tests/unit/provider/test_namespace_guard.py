"""`NamespaceGuardResource`: what may be deleted, and what may not while HyperShift has a control plane there."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from identity.aks.kubeconfig import Kubeconfig
from localcloud.testing.hosts import Serve
from plugin import PluginError, Props, Secret
from provider.namespace_guard import NamespaceGuardResource
from tests.unit.access_world import TOKEN, FakeApiServer, skeleton

URN = "urn:pulumi:dev::idstack::idstack:hypershift:HostedCluster$idstack:index:NamespaceGuard::hc1-namespace-guard"
PATH = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-hc1/hostedcontrolplanes"

resource = NamespaceGuardResource()


class GuardWorld:
    """A guard in the state, and the cluster that it guards."""

    def __init__(self, api: FakeApiServer, server: str) -> None:
        self.api = api
        skeletal = Kubeconfig.parse(base64.b64decode(skeleton(server)).decode(), "test")
        self.kubeconfig = skeletal.only(skeletal.chosen(), user={"token": TOKEN}).to_json()

    def inputs(self, **changes: Any) -> Props:
        given = {
            "clusterId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/mgmt",
            "kubeconfig": self.kubeconfig,
            "context": None,
            "namespace": "clusters-hc1",
            "handedOver": False,
        }
        return resource.check(URN, None, {**given, **changes}).inputs

    def delete(self, **changes: Any) -> None:
        state = resource.create(URN, self.inputs(**changes), preview=False).state
        resource.delete(URN, "clusters-hc1", self.inputs(**changes), state)


@pytest.fixture
def world(serve_plain: Serve) -> GuardWorld:
    api = FakeApiServer()
    return GuardWorld(api, serve_plain(api.app()))


def test_a_namespace_with_a_control_plane_keeps_its_guard(world: GuardWorld) -> None:
    world.api.has_control_plane("clusters-hc1", "hc1")

    with pytest.raises(PluginError) as refused:
        world.delete()

    assert str(refused.value) == (
        'clusters-hc1 holds HyperShift\'s control plane "hc1", and the stack would delete it with the namespace. '
        "Nothing of it was deleted. To keep the cluster, leave the namespace to HyperShift: `.venv/bin/idstack pulumi "
        "--stack dev -- config set clusterSide hypershift`, then `.venv/bin/idstack up --stack dev`. To delete the "
        "cluster, let HyperShift do it first: "
        "`kubectl --namespace clusters delete hostedcluster hc1`, and wait until it is gone, as its deletion needs the "
        "stack's identities; then run the command again"
    )


def test_without_a_control_plane_there_or_without_hypershift_it_goes(world: GuardWorld) -> None:
    world.api.has_control_plane("clusters-hc2", "hc2")
    world.delete()

    world.api.documents[PATH] = {"items": []}
    world.delete()

    world.api.has_control_plane("clusters-hc1", "hc1")
    world.delete(handedOver=True)


def test_what_cannot_be_seen_counts_as_a_control_plane(world: GuardWorld) -> None:
    world.api.unreadable = {PATH}

    with pytest.raises(PluginError) as refused:
        world.delete()

    assert (
        "whether clusters-hc1 holds a control plane of HyperShift cannot be seen (deployer-object-id may not read"
        in (str(refused.value))
    )
    assert f"`.venv/bin/idstack pulumi --stack dev -- state delete '{URN}'`" in str(refused.value)


def test_another_namespace_is_another_guard_and_all_else_changes_in_place(world: GuardWorld) -> None:
    before = world.inputs()

    renamed = resource.diff(URN, "id", before, {}, world.inputs(namespace="clusters-hc2"))
    handed_over = resource.diff(URN, "id", before, {}, world.inputs(handedOver=True, context="admin"))

    assert {path for path, change in renamed.changes.items() if change.replace} == {"namespace"}
    assert handed_over.changes
    assert not any(change.replace for change in handed_over.changes.values())


def test_the_kubeconfig_is_a_secret_of_the_state(world: GuardWorld) -> None:
    state = resource.create(URN, world.inputs(), preview=False).state
    updated = resource.update(URN, "id", state, state, world.inputs(handedOver=True), preview=False)

    assert state["kubeconfig"] == updated["kubeconfig"] == Secret(world.kubeconfig)


@pytest.mark.parametrize(
    ("name", "value"), [("clusterId", ""), ("kubeconfig", 1), ("namespace", None), ("handedOver", "yes")]
)
def test_an_input_of_another_kind_is_refused_by_name(world: GuardWorld, name: str, value: Any) -> None:
    checked = resource.check(URN, None, {**world.inputs(), name: value})

    assert [failure.property for failure in checked.failures] == [name]
