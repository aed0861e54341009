"""One stack through its life: clusters and identities come, change and go, and each change touches its own alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from tests.engine.changing import FAST, Change, bring_up, refused
from tests.harness import LocalStack, running_stack

# What Azure keeps of deleted things: names of assignments, soft-deleted applications.
_LEFT_BEHIND = {"arm-role-assignment-name", "entra-deleted"}


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
    on_again: dict[str, str]
    second_removed: Change
    to_stack: Change
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
        bring_up(stack, clusterSide="hypershift")
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
        retagged,
    )


def _adopt_what_is_in_the_way(stack: LocalStack) -> tuple[str, dict[str, str]]:
    """`idstack up`, the commands it ends with, and `up` again; returns what it said and what is left to do."""
    stopped = stack.idstack("up", "--stack", "local", check=False)
    for command in re.findall(r"^ +(\.venv/bin/idstack .*)$", stopped.stderr, re.MULTILINE):
        stack.run("sh", "-c", command)
    stack.up()
    return stopped.stdout + stopped.stderr, stack.preview()


def _of(cluster: str, names: set[str]) -> bool:
    return all(name == cluster or name.startswith(f"{cluster}-") for name in names)


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
    assert set(life.builtin.preview.values()) == {"replace"}


def test_another_source_writes_the_secret_anew_and_takes_the_application_away(life: Life) -> None:
    assert _of("hc1-network", set(life.switched.preview))
    assert life.switched.preview["hc1-network-credential-secret"] == "update"
    assert life.switched.preview["hc1-network-entra-application"] == "delete"
    assert {"entra-application", "entra-principal"} <= {kind for kind, _ in life.switched.removed}
    assert [key for kind, key in life.switched.removed if kind == "keyvault-secret"] == []


def test_an_identity_switched_off_goes_with_its_secret_and_nothing_else(life: Life) -> None:
    assert set(life.off.preview.values()) == {"delete"}
    assert _of("hc1-image-registry", set(life.off.preview))


def test_its_name_is_blocked_by_soft_delete_until_the_printed_commands_bring_it_back(life: Life) -> None:
    assert "is currently in a deleted but recoverable state" in life.blocked
    assert "idstack local recover" in life.blocked
    assert life.on_again == {}


def test_a_cluster_taken_out_goes_with_its_own_and_leaves_the_other_alone(life: Life) -> None:
    assert set(life.second_removed.preview.values()) == {"delete"}
    assert _of("hc2", life.second_removed.names("delete"))
    assert life.second_removed.touched & life.first.added == frozenset()
    gone = life.second_removed.removed
    assert {kind for kind, _ in life.second_added.added - gone} <= {*_LEFT_BEHIND, "keyvault-secret"}


def test_a_cluster_side_that_becomes_the_stacks_is_created_and_changes_nothing(life: Life) -> None:
    assert set(life.to_stack.preview.values()) == {"create"}


def test_a_preview_of_new_tags_shows_three_assignments_replaced_that_up_leaves_alone(life: Life) -> None:
    """docs/limits.md: an update's outputs are unknown until it is done, the principal's id among them."""
    replaced = {name for name, operation in life.retagged.preview.items() if operation != "update"}

    assert {re.sub(r"-roles-.*", "", name) for name in replaced} == {
        f"hc1-data-plane-{name}" for name in ("image-registry", "disk", "file")
    }
    touched = life.retagged.added | life.retagged.touched
    assert [key for _, key in touched if "roleassignments" in key.lower()] == []
