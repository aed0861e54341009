"""One stack through its life: clusters and identities come, change and go, and each change touches its own alone."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from identity.clouds import LOCAL_SUBSCRIPTION_ID
from identity.naming import role_assignment_name
from tests.engine.changing import FAST, Change, Key, bring_up, refused
from tests.harness import LocalStack, running_stack

# What Azure keeps of deleted things: names of assignments, soft-deleted applications.
_LEFT_BEHIND = {"arm-role-assignment-name", "entra-deleted"}
# The built-in Kubernetes API counts its writes.
_VERSION_COUNTER = ("kubernetes-version", "resourceVersion")
_REGISTRY_SECRET = ("keyvault-secret", "kv-idstack-local/ciro-hc1-json")


@dataclass
class Life:
    """Every change in order, and what was refused on the way."""

    first: Change
    second_added: Change
    refused: list[str]
    renamed: list[str]
    builtin: Change
    switched: Change
    off: Change
    blocked: str
    on_again: Change
    second_removed: Change
    to_stack: Change
    back: Change
    retagged: Change


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    with running_stack(tmp_path_factory.mktemp("clusters")) as stack:
        [configured] = stack.configuration("hostedClusters")
        imported = configured["identities"]["imageRegistry"]

        def hc1(**identities: Any) -> dict[str, Any]:
            return {**configured, "identities": identities}

        second = {
            **hc1(),
            "name": "hc2",
            "infraID": "hc2-infra",
            "issuerURL": "https://hc2oidc.blob.core.windows.net/hc2oidc",
        }
        first = bring_up(stack, hostedClusters=[hc1()], clusterSide="hypershift", credentials=FAST)
        second_added = bring_up(stack, hostedClusters=[hc1(), second])
        lossy = hc1(imageRegistry={"enabled": False}, ingress={"secretName": "mine"}, network=imported)
        refusals = refused(stack, hostedClusters=[lossy, {**second, "name": "hc3", "infraID": "hc3-infra"}])
        renamed = refused(stack, hostedClusters=[hc1(), {**second, "name": "hc3"}], allowCredentialLoss=["hc2"])
        builtin = bring_up(stack, roles="builtin")
        stack.configure(allowCredentialLoss=["hc1"])
        switched = bring_up(stack, hostedClusters=[hc1(network=imported), second])
        off = bring_up(stack, hostedClusters=[hc1(network=imported, imageRegistry={"enabled": False}), second])
        stack.configure(allowCredentialLoss=[], hostedClusters=[hc1(network=imported), second])
        blocked, on_again = _adopt_what_is_in_the_way(stack)
        second_removed = bring_up(stack, hostedClusters=[hc1(network=imported)])
        to_stack = bring_up(stack, clusterSide="stack")
        back = bring_up(stack, clusterSide="hypershift")
        retagged = bring_up(stack, tags={"environment": "local", "team": "identity"})
    return Life(
        first,
        second_added,
        refusals,
        renamed,
        builtin,
        switched,
        off,
        blocked,
        on_again,
        second_removed,
        to_stack,
        back,
        retagged,
    )


def _adopt_what_is_in_the_way(stack: LocalStack) -> tuple[str, Change]:
    """`idstack up`, the commands it ends with, and `up` again; what it said, and all that changed on the way."""
    before = stack.contents()
    stopped = stack.idstack("up", "--stack", "local", check=False)
    for command in re.findall(r"^ +(\.venv/bin/idstack .*)$", stopped.stderr, re.MULTILINE):
        stack.run("sh", "-c", command)
    stack.up()
    return stopped.stdout + stopped.stderr, Change.between(before, stack.contents(), preview=stack.preview())


def _of(cluster: str, names: set[str]) -> bool:
    return all(name == cluster or name.startswith(f"{cluster}-") for name in names)


def _assignments(component: str, *groups: str, cluster: str = "hc1") -> set[Key]:
    """HyperShift's names of an identity's role assignments, as the local ARM keeps them."""
    scopes = [f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/{group}" for group in groups]
    ids = [
        f"{scope}/providers/Microsoft.Authorization/roleAssignments/"
        f"{role_assignment_name(f'{cluster}-infra', component, scope)}"
        for scope in scopes
    ]
    return {("arm", each.lower()) for each in ids}


def _is_one_application(change: frozenset[Key]) -> bool:
    """Whether one Entra application with its principal makes up all that is of Entra in a change."""
    kinds = sorted(kind for kind, _ in change if kind.startswith("entra-"))
    return kinds == ["entra-application", "entra-application-id", "entra-principal", "entra-principal-id"]


def _of_entra(change: frozenset[Key]) -> set[Key]:
    return {key for key in change if key[0].startswith("entra-")}


def _soft_deleted(change: frozenset[Key]) -> set[Key]:
    """What Entra keeps of the applications and principals in a change."""
    return {("entra-deleted", key) for kind, key in change if kind in {"entra-application", "entra-principal"}}


def test_the_first_up_only_creates(life: Life) -> None:
    assert set(life.first.preview.values()) == {"create"}
    assert life.first.removed == frozenset()


def test_a_second_cluster_creates_its_own_and_touches_nothing_of_the_first(life: Life) -> None:
    assert set(life.second_added.preview.values()) == {"create"}
    assert _of("hc2", life.second_added.names("create"))
    assert life.second_added.touched & life.first.added == frozenset()


def test_preview_and_up_refuse_every_loss_of_a_credential_in_use_with_both_clusters_in_one_report(life: Life) -> None:
    for said in life.refused:
        assert "The stack's configuration has 2 problems; nothing was changed." in said
        assert "found:    hc1 would lose credentials in use:" in said
        for line in (
            "- imageRegistry: ciro-hc1-json -> nothing",
            "- ingress: ingress-hc1-json -> mine",
            "- network: entra-application -> hc1-image-registry",
        ):
            assert line in said
        assert "found:    hc2 would lose credentials in use:" in said
        assert "- all of it: hc3 has its issuerURL" in said


def test_a_cluster_with_its_infra_id_is_not_renamed_in_one_run(life: Life) -> None:
    for said in life.renamed:
        assert 'found:    "hc3" in the place of hc2, whose infraID it has' in said


def test_other_roles_replace_assignments_and_nothing_else(life: Life) -> None:
    control_plane_operator, node_pools = ("hc1-managed", "hc1-nsg", "hc1-network"), ("hc1-managed", "hc1-network")

    assert set(life.builtin.preview.values()) == {"replace"}
    assert life.builtin.changed == {
        key
        for cluster in ("hc1", "hc2")
        for component, groups in (("cpo", control_plane_operator), ("capz", node_pools))
        for key in _assignments(component, *groups, cluster=cluster)
    }
    assert life.builtin.added | life.builtin.removed == frozenset()


def test_another_source_writes_the_secret_anew_and_takes_the_application_away(life: Life) -> None:
    assert _of("hc1-network", set(life.switched.preview))
    assert life.switched.preview["hc1-network-credential-secret"] == "update"
    assert life.switched.preview["hc1-network-entra-application"] == "delete"
    assert life.switched.changed == {
        ("keyvault-secret", "kv-idstack-local/cncc-hc1-json"),
        *_assignments("cncc", "hc1-managed", "hc1-network"),
    }
    assert _is_one_application(life.switched.removed)
    assert _of_entra(life.switched.removed) == life.switched.removed
    assert life.switched.added == _soft_deleted(life.switched.removed)


def test_an_identity_switched_off_goes_with_its_secret_and_nothing_else(life: Life) -> None:
    assert set(life.off.preview.values()) == {"delete"}
    assert _of("hc1-image-registry", set(life.off.preview))
    assert life.off.changed == {_REGISTRY_SECRET}, "soft-deleted"
    assert _is_one_application(life.off.removed)
    assert life.off.removed - _of_entra(life.off.removed) == _assignments("ciro", "hc1-managed")
    assert life.off.added == _soft_deleted(life.off.removed)


def test_its_name_is_blocked_by_soft_delete_until_the_printed_commands_bring_it_back(life: Life) -> None:
    assert "is currently in a deleted but recoverable state" in life.blocked
    assert "idstack local recover" in life.blocked
    assert life.on_again.preview == {}
    assert life.on_again.changed & (life.first.added | life.second_added.added) == {_REGISTRY_SECRET}
    assert life.on_again.removed == frozenset()
    assert _is_one_application(life.on_again.added)
    assert life.on_again.added - _of_entra(life.on_again.added) == _assignments("ciro", "hc1-managed")


def test_a_cluster_taken_out_goes_with_its_own_and_leaves_the_other_alone(life: Life) -> None:
    assert set(life.second_removed.preview.values()) == {"delete"}
    assert _of("hc2", life.second_removed.names("delete"))
    gone, own = life.second_removed.removed, life.second_added.added
    secrets = {key for key in own if key[0] == "keyvault-secret"}
    assert {kind for kind, _ in own - gone - secrets} <= _LEFT_BEHIND
    assert gone <= own
    assert life.second_removed.changed == secrets, "soft-deleted"
    # Principals of managed identities are not among them.
    assert life.second_removed.added <= _soft_deleted(gone)


def test_a_cluster_side_that_becomes_the_stacks_is_created_and_changes_nothing(life: Life) -> None:
    made = Counter(kind for kind, _, _ in map(_kubernetes_object, life.to_stack.added))

    assert set(life.to_stack.preview.values()) == {"create"}
    assert {namespace for _, namespace, _ in map(_kubernetes_object, life.to_stack.added)} == {"", "clusters-hc1"}
    # Events come from the kubelet, one or more for each pod.
    assert {kind: count for kind, count in made.items() if kind != "events"} == {
        "namespaces": 1,
        "secretproviderclasses": 9,
        "azureclusteridentities": 1,
        "configmaps": 1,
        "secrets": 4,
        "deployments": 10,
        "pods": 10,
        "secretproviderclasspodstatuses": 10,
    }
    assert life.to_stack.touched <= {_VERSION_COUNTER}


def test_a_cluster_side_that_becomes_hypershifts_takes_those_objects_away_and_nothing_else(life: Life) -> None:
    assert set(life.back.preview.values()) == {"delete"}
    assert {key for key in life.to_stack.added if "/events/" not in key[1]} <= life.back.removed
    assert {kind for kind, _ in life.back.removed} == {"kubernetes"}
    assert {namespace for _, namespace, _ in map(_kubernetes_object, life.back.removed)} == {"", "clusters-hc1"}
    assert life.back.added == frozenset()
    assert life.back.changed <= {_VERSION_COUNTER}


def _kubernetes_object(key: Key) -> tuple[str, str, str]:
    """Plural, namespace and name of an object by its key in the built-in API's store."""
    kind, path = key
    assert kind == "kubernetes"
    _, plural, namespace, name = path.split("/")
    return plural, namespace, name


def test_a_preview_of_new_tags_shows_three_assignments_replaced_that_up_leaves_alone(life: Life) -> None:
    """docs/limits.md: an update's outputs are unknown until it is done, the principal's id among them."""
    replaced = {name for name, operation in life.retagged.preview.items() if operation != "update"}

    assert {re.sub(r"-roles-.*", "", name) for name in replaced} == {
        f"hc1-data-plane-{name}" for name in ("image-registry", "disk", "file")
    }
    touched = life.retagged.added | life.retagged.touched
    assert [key for _, key in touched if "roleassignments" in key.lower()] == []
