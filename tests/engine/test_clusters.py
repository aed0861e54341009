"""Clusters and identities of one stack come, change and go; each change touches its own resources only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from identity.clouds import LOCAL_SUBSCRIPTION_ID
from identity.naming import role_assignment_name
from tests.engine.changing import FAST, Change, Key, another_imported, bring_up, with_applications
from tests.harness import LocalStack, running_stack

pytestmark = pytest.mark.nightly

# What Azure keeps of deleted things: names of assignments, soft-deleted applications.
_LEFT_BEHIND = {"arm-role-assignment-name", "entra-deleted"}
_NETWORK = "hc1-network/providers/Microsoft.Network/virtualNetworks/hc1-vnet"
_SUBNET = f"{_NETWORK}/subnets/default"
_SECURITY_GROUP = "hc1-nsg/providers/Microsoft.Network/networkSecurityGroups/hc1-nsg"
_ZONE = "dns-local/providers/Microsoft.Network/dnszones/local.example.com"
# Of `roles: builtin` alone, and of `roles: hypershift` alone, by component.
_AT_RESOURCES = {
    "cloud-provider": (_SUBNET, _SECURITY_GROUP),
    "capz": (_SUBNET,),
    "cpo": (_NETWORK, _SECURITY_GROUP),
    "ciro": (_NETWORK,),
    "ingress": (_SUBNET, _ZONE),
    "cncc": (_NETWORK,),
    "azure-file": (_NETWORK, _SECURITY_GROUP),
    "ciroWI": (_NETWORK,),
    "azure-fileWI": (_NETWORK, _SECURITY_GROUP),
}
_AT_GROUPS = {
    **dict.fromkeys(("cloud-provider", "cpo", "azure-file"), ("hc1-nsg", "hc1-network")),
    **dict.fromkeys(("capz", "cncc"), ("hc1-network",)),
    "ingress": ("hc1-network", "dns-local"),
}
_REGISTRY_SECRET = ("keyvault-secret", "kv-idstack-local/ciro-hc1-json")


@dataclass
class ClusterScenario:
    """Every change in order, and what was in the way of one."""

    first: Change
    second_added: Change
    builtin: Change
    switched: Change
    off: Change
    blocked: str
    on_again: Change
    second_removed: Change
    left_to_do: dict[str, str]


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> ClusterScenario:
    with running_stack(tmp_path_factory.mktemp("clusters")) as stack:
        [configured] = stack.configuration("hostedClusters")
        imported = configured["identities"]["imageRegistry"]
        replaced = ("controlPlaneOperator", "nodePoolManagement")
        base = with_applications(configured, *replaced, "imageRegistry", "ingress", "network")

        def hc1(**identities: Any) -> dict[str, Any]:
            return {**base, "identities": base["identities"] | identities}

        second = {
            **with_applications(configured, *replaced, imported=another_imported(stack, imported)),
            "name": "hc2",
            "infraID": "hc2-infra",
            "issuerURL": "https://hc2oidc.blob.core.windows.net/hc2oidc",
        }
        facts: dict[str, Any] = {
            "first": bring_up(stack, hostedClusters=[hc1()], clusterSide="hypershift", credentials=FAST),
            "second_added": bring_up(stack, hostedClusters=[hc1(), second]),
        }
        later = another_imported(stack, imported, "later-than")
        facts["builtin"] = bring_up(stack, roles="builtin")
        stack.configure(allowCredentialLoss=["hc1"])
        facts["switched"] = bring_up(stack, hostedClusters=[hc1(network=later), second])
        off = hc1(network=later, imageRegistry={"enabled": False})
        facts["off"] = bring_up(stack, hostedClusters=[off, second])
        stack.configure(allowCredentialLoss=[], hostedClusters=[hc1(network=later), second])
        facts["blocked"], facts["on_again"] = _adopt_what_is_in_the_way(stack)
        facts["second_removed"] = bring_up(stack, hostedClusters=[hc1(network=later)])
        return ClusterScenario(**facts, left_to_do=stack.preview())


def _adopt_what_is_in_the_way(stack: LocalStack) -> tuple[str, Change]:
    """`idstack up`, the commands it ends with, and `up` again; all that was printed and changed on the way."""
    before = stack.contents()
    stopped = stack.idstack("up", "--stack", "local", check=False)
    stack.follow(stopped.stderr)
    stack.up()
    return stopped.stdout + stopped.stderr, Change.between(before, stack.contents(), steps=stack.preview())


def _of(cluster: str, names: set[str]) -> bool:
    return all(name == cluster or name.startswith(f"{cluster}-") for name in names)


def _assignments(component: str, *places: str, cluster: str = "hc1") -> set[Key]:
    """HyperShift's names of an identity's role assignments, as the local ARM keeps them.

    The places are resource groups, or the rest of an ARM id in one.
    """
    scopes = [f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/{place}" for place in places]
    ids = [
        f"{scope}/providers/Microsoft.Authorization/roleAssignments/"
        f"{role_assignment_name(f'{cluster}-infra', component, scope)}"
        for scope in scopes
    ]
    return {("arm", id_.lower()) for id_ in ids}


def _assigned_at(places: dict[str, tuple[str, ...]], cluster: str) -> set[Key]:
    """The role assignments of a cluster's components at their places."""
    return {key for component, place in places.items() for key in _assignments(component, *place, cluster=cluster)}


def _of_both(places: dict[str, tuple[str, ...]]) -> set[Key]:
    return _assigned_at(places, "hc1") | _assigned_at(places, "hc2")


def _without_left_behind(change: frozenset[Key]) -> set[Key]:
    return {key for key in change if key[0] not in _LEFT_BEHIND}


def _is_one_application(change: frozenset[Key]) -> bool:
    """Whether one Entra application with its principal makes up all that is of Entra in a change."""
    kinds = sorted(kind for kind, _ in change if kind.startswith("entra-"))
    return kinds == ["entra-application", "entra-application-id", "entra-principal", "entra-principal-id"]


def _of_entra(change: frozenset[Key]) -> set[Key]:
    return {key for key in change if key[0].startswith("entra-")}


def _soft_deleted(change: frozenset[Key]) -> set[Key]:
    """What Entra keeps of the applications and principals in a change."""
    return {("entra-deleted", key) for kind, key in change if kind in {"entra-application", "entra-principal"}}


def test_a_second_cluster_creates_its_own_and_touches_no_other(scenario: ClusterScenario) -> None:
    assert set(scenario.second_added.steps.values()) == {"create"}
    assert _of("hc2", scenario.second_added.names("create"))
    assert scenario.second_added.touched & scenario.first.added == frozenset()


def test_other_roles_replace_assignments_and_nothing_else(scenario: ClusterScenario) -> None:
    """The new ones at the resources come before those of the groups go; a role that changes is deleted first."""
    assert scenario.builtin.changed == _of_both({"cpo": ("hc1-managed",), "capz": ("hc1-managed",)})
    assert _without_left_behind(scenario.builtin.added) == _of_both(_AT_RESOURCES)
    assert scenario.builtin.removed == _of_both(_AT_GROUPS)
    assert set(scenario.builtin.steps.values()) == {"replace", "create", "delete"}
    assert all("-roles-" in name for name in scenario.builtin.steps)


def test_another_source_rewrites_the_secret_and_deletes_the_application(scenario: ClusterScenario) -> None:
    assert _of("hc1-network", set(scenario.switched.steps))
    assert scenario.switched.steps["hc1-network-credential-secret"] == "update"
    assert scenario.switched.steps["hc1-network-entra-application"] == "delete"
    assert scenario.switched.changed == {
        ("keyvault-secret", "kv-idstack-local/cncc-hc1-json"),
        *_assignments("cncc", "hc1-managed", _NETWORK),
    }
    assert _is_one_application(scenario.switched.removed)
    assert _of_entra(scenario.switched.removed) == scenario.switched.removed
    assert scenario.switched.added == _soft_deleted(scenario.switched.removed)


def test_an_identity_switched_off_goes_with_its_secret_and_nothing_else(scenario: ClusterScenario) -> None:
    assert set(scenario.off.steps.values()) == {"delete"}
    assert _of("hc1-image-registry", set(scenario.off.steps))
    assert scenario.off.changed == {_REGISTRY_SECRET}, "soft-deleted"
    assert _is_one_application(scenario.off.removed)
    assert scenario.off.removed - _of_entra(scenario.off.removed) == _assignments("ciro", "hc1-managed", _NETWORK)
    assert scenario.off.added == _soft_deleted(scenario.off.removed)


def test_soft_delete_blocks_its_name_until_the_printed_commands_run(scenario: ClusterScenario) -> None:
    assert "is currently in a deleted but recoverable state" in scenario.blocked
    assert "    .venv/bin/idstack recover --stack local\n" in scenario.blocked
    assert scenario.on_again.steps == {}
    assert scenario.on_again.changed & (scenario.first.added | scenario.second_added.added) == {_REGISTRY_SECRET}
    assert scenario.on_again.removed == frozenset()
    assert _is_one_application(scenario.on_again.added)
    assert scenario.on_again.added - _of_entra(scenario.on_again.added) == _assignments("ciro", "hc1-managed", _NETWORK)


def test_a_cluster_taken_out_goes_with_its_own_and_leaves_the_other_alone(scenario: ClusterScenario) -> None:
    assert set(scenario.second_removed.steps.values()) == {"delete"}
    assert _of("hc2", scenario.second_removed.names("delete"))
    gone = scenario.second_removed.removed
    own = scenario.second_added.added - _assigned_at(_AT_GROUPS, "hc2") | _assigned_at(_AT_RESOURCES, "hc2")
    secrets = {key for key in own if key[0] == "keyvault-secret"}
    assert {kind for kind, _ in own - gone - secrets} <= _LEFT_BEHIND
    assert gone <= own
    assert scenario.second_removed.changed == secrets, "soft-deleted"
    # Principals of managed identities are not among them.
    assert scenario.second_removed.added <= _soft_deleted(gone)


def test_in_the_end_nothing_is_left_to_do(scenario: ClusterScenario) -> None:
    assert scenario.left_to_do == {}
