"""A shared stack and a stack for each hosted cluster, on one local cloud: who makes what, and who touches whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.engine.changing import CLASSES, FAST, Change, another_imported, bring_up, refusal, with_applications
from tests.harness import LocalStack, running_stack

pytestmark = pytest.mark.nightly

SHARED = "organization/idstack/local-shared"


@dataclass
class Shapes:
    """What happened on the way, in this order."""

    before_shared: str
    shared_unfinished: str
    shared: Change
    first: Change
    foreign_cluster: str
    second: Change
    # Of the shared and of the first stack, once both cluster stacks are up.
    others: list[dict[str, str]]
    table: str
    down: str
    left: set[tuple[str, str]]
    shared_keeps: dict[str, str]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Shapes:
    with running_stack(tmp_path_factory.mktemp("shapes")) as stack:
        [cluster] = stack.configuration("hostedClusters")

        def cluster_stack(name: str, identities: dict[str, Any]) -> LocalStack:
            changes = {
                "name": name,
                "infraID": f"{name}-infra",
                "issuerURL": f"https://{name}oidc.blob.core.windows.net/{name}oidc",
            }
            own = {"sharedStack": SHARED, "hostedClusters": [{**identities, **changes}]}
            return stack.beside(f"local-{name}", "managementCluster", "probe", protect=False, credentials=FAST, **own)

        hc1 = cluster_stack("hc1", with_applications(cluster, "nodePoolManagement", "disk"))
        before_shared = refusal(hc1)
        shared = stack.beside("local-shared", "managementCluster", "vault", protect=False)
        shared_unfinished = refusal(hc1)
        changes = [bring_up(shared), bring_up(hc1)]
        elsewhere = {"resourceGroup": "aks-local", "name": "aks-other-local"}
        foreign_cluster = refusal(hc1, managementCluster=elsewhere)
        another = another_imported(stack, cluster["identities"]["imageRegistry"])
        hc2 = cluster_stack("hc2", with_applications(cluster, "nodePoolManagement", imported=another))
        hc2.configure(clusterSide="hypershift")
        changes.append(bring_up(hc2))
        others = [shared.preview(), hc1.preview()]
        table = stack.idstack("status", "--stack", "local-hc1").stdout
        down = stack.idstack("down", "--stack", "local-hc2").stdout
        return Shapes(
            before_shared,
            shared_unfinished,
            changes[0],
            changes[1],
            foreign_cluster,
            changes[2],
            others,
            table,
            down,
            stack.inventory(),
            shared.preview(),
        )


def test_a_shared_stack_that_does_not_exist_is_refused_before_anything(shapes: Shapes) -> None:
    assert "The stack's configuration has 1 problem; nothing was changed." in shapes.before_shared
    report = _unindented(shapes.before_shared)
    assert f'idstack:sharedStack\n  found:    "{SHARED}", which does not exist' in report


def test_a_shared_stack_without_outputs_is_refused_with_their_names(shapes: Shapes) -> None:
    missing = "keyVaultId, keyVaultUri, keyVaultUserClientId and tenantId"
    assert f'found:    "{SHARED}", whose outputs lack {missing}' in shapes.shared_unfinished


def test_the_shared_stack_is_the_vault_and_the_role_of_its_user(shapes: Shapes) -> None:
    assert shapes.shared.names("create") == set(shapes.shared.steps)
    assert {"vault-vault", "key-vault-user-roles-vault"} <= set(shapes.shared.steps)
    # Entra ID makes its signing key with the first token.
    made = {kind for kind, _ in shapes.shared.added} - {"entra-signing-key"}
    assert made == {"arm", "arm-role-assignment-name", "keyvault-name"}
    assert len([key for kind, key in shapes.shared.added if kind == "arm"]) == 2


def test_a_clusters_stack_makes_its_own_and_neither_vault_nor_its_user(shapes: Shapes) -> None:
    for name, change in (("hc1", shapes.first), ("hc2", shapes.second)):
        assert change.names("create") == set(change.steps)
        strangers = {step for step in change.steps if step != name and not step.startswith(f"{name}-")}
        assert strangers <= {f"idstack-local-{name}", "azure", "entra", "kubernetes", "owner"}
        assert change.removed == frozenset()


def test_a_second_cluster_touches_neither_the_first_nor_the_shared_stack(shapes: Shapes) -> None:
    assert shapes.second.changed & (shapes.first.added | shapes.shared.added) == frozenset()
    assert shapes.others == [{}, {}]


def test_another_management_cluster_than_the_key_vault_users_is_refused(shapes: Shapes) -> None:
    report = shapes.foreign_cluster
    assert "idstack:managementCluster.name" in report
    assert f'accepted: "aks-mgmt-local" in "aks-local", as in {SHARED}: its nodes have the key-vault-user' in report


def test_every_identity_of_the_first_cluster_signs_in(shapes: Shapes) -> None:
    parts = ([line for line in part.splitlines() if line.startswith("hc1 ")] for part in shapes.table.split("\n\n"))
    identities, mounted, *_ = (rows for rows in parts if rows)

    assert len(identities) >= CLASSES
    assert all(" ok " in f"{row} " for row in identities), shapes.table
    assert len(mounted) >= CLASSES
    assert all(row.rstrip().endswith(" current") for row in mounted), shapes.table


def test_a_cluster_goes_with_its_stack_and_the_local_cloud_stays(shapes: Shapes) -> None:
    assert "the local cloud stays, because it still has other stacks: local, local-hc1, local-shared" in shapes.down
    assert shapes.first.added | shapes.shared.added <= shapes.left
    kept = {"arm-role-assignment-name", "entra-deleted", "keyvault-secret"}
    assert {kind for kind, _ in shapes.second.added & shapes.left} <= kept
    assert shapes.shared_keeps == {}


def _unindented(report: str) -> str:
    """Without the spaces that the engine puts before each line."""
    return "\n".join(line.removeprefix("    ") for line in report.splitlines())
