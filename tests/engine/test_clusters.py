"""Clusters and identities of one stack come, change and go; each change touches its own resources only."""

from __future__ import annotations

from pathlib import Path
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


def test_clusters_and_identities_come_change_and_go_with_their_own_alone(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack:
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
        first = bring_up(stack, hostedClusters=[hc1()], clusterSide="hypershift", credentials=FAST)
        second_added = bring_up(stack, hostedClusters=[hc1(), second])
        assert set(second_added.steps.values()) == {"create"}
        assert _of("hc2", second_added.names("create"))
        assert second_added.touched & first.added == frozenset()

        later = another_imported(stack, imported, "later-than")
        _require_other_roles(bring_up(stack, roles="builtin"))
        stack.configure(allowCredentialLoss=["hc1"])
        _require_another_source(bring_up(stack, hostedClusters=[hc1(network=later), second]))
        off = hc1(network=later, imageRegistry={"enabled": False})
        _require_off(bring_up(stack, hostedClusters=[off, second]))
        stack.configure(allowCredentialLoss=[], hostedClusters=[hc1(network=later), second])
        on_again = _adopt_what_is_in_the_way(stack)
        assert on_again.changed & (first.added | second_added.added) == {_REGISTRY_SECRET}

        _require_removed(bring_up(stack, hostedClusters=[hc1(network=later)]), second_added)
        assert stack.preview() == {}


def _adopt_what_is_in_the_way(stack: LocalStack) -> Change:
    """`idstack up`, which a name in soft delete stops, the commands it ends with, and `up` again; all that changed."""
    before = stack.contents()
    stopped = stack.idstack("up", "--stack", "local", check=False)
    assert "is currently in a deleted but recoverable state" in stopped.stdout + stopped.stderr
    assert "    .venv/bin/idstack recover --stack local\n" in stopped.stdout + stopped.stderr
    stack.follow(stopped.stderr)
    stack.up()
    change = Change.between(before, stack.contents(), steps=stack.preview())
    assert (change.steps, change.removed) == ({}, frozenset())
    assert _is_one_application(change.added)
    assert change.added - _of_entra(change.added) == _assignments("ciro", "hc1-managed", _NETWORK)
    return change


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


def _require_other_roles(builtin: Change) -> None:
    """The new ones at the resources come before those of the groups go; a role that changes is deleted first."""
    assert builtin.changed == _of_both({"cpo": ("hc1-managed",), "capz": ("hc1-managed",)})
    assert _without_left_behind(builtin.added) == _of_both(_AT_RESOURCES)
    assert builtin.removed == _of_both(_AT_GROUPS)
    assert set(builtin.steps.values()) == {"replace", "create", "delete"}
    assert all("-roles-" in name for name in builtin.steps)


def _require_another_source(switched: Change) -> None:
    """The secret is written again, and the application deleted."""
    assert _of("hc1-network", set(switched.steps))
    assert switched.steps["hc1-network-credential-secret"] == "update"
    assert switched.steps["hc1-network-entra-application"] == "delete"
    assert switched.changed == {
        ("keyvault-secret", "kv-idstack-local/cncc-hc1-json"),
        *_assignments("cncc", "hc1-managed", _NETWORK),
    }
    assert _is_one_application(switched.removed)
    assert _of_entra(switched.removed) == switched.removed
    assert switched.added == _soft_deleted(switched.removed)


def _require_off(off: Change) -> None:
    """The identity goes with its secret and nothing else."""
    assert set(off.steps.values()) == {"delete"}
    assert _of("hc1-image-registry", set(off.steps))
    assert off.changed == {_REGISTRY_SECRET}, "soft-deleted"
    assert _is_one_application(off.removed)
    assert off.removed - _of_entra(off.removed) == _assignments("ciro", "hc1-managed", _NETWORK)
    assert off.added == _soft_deleted(off.removed)


def _require_removed(second_removed: Change, second_added: Change) -> None:
    """A cluster goes with its own, and leaves the other alone."""
    assert set(second_removed.steps.values()) == {"delete"}
    assert _of("hc2", second_removed.names("delete"))
    gone = second_removed.removed
    own = second_added.added - _assigned_at(_AT_GROUPS, "hc2") | _assigned_at(_AT_RESOURCES, "hc2")
    secrets = {key for key in own if key[0] == "keyvault-secret"}
    assert {kind for kind, _ in own - gone - secrets} <= _LEFT_BEHIND
    assert gone <= own
    assert second_removed.changed == secrets, "soft-deleted"
    # Principals of managed identities are not among them.
    assert second_removed.added <= _soft_deleted(gone)
