"""Whose a resource is, by its parents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, OPTIONAL
from ops.world.ownership import KEY_VAULT_USER, Ownership, ResourceOwner, by_owner
from tests.unit.ops.states import below, cluster, cluster_side, grants, identity, with_parents, workload

ROLE = resource_types.ROLE_ASSIGNMENT
[ATTACHED] = [row for row in OPTIONAL if row.attached_by]
KMS = ResourceOwner("hc1", "kms")


def owner(resource: Any) -> ResourceOwner:
    return Ownership.of(with_parents(resource)).owner(resource["urn"])


@given(name=st.sampled_from(["hc1", "hc1-kms", "hc"]), row=st.sampled_from(CONTROL_PLANE))
def test_an_identity_is_its_clusters_whatever_the_clusters_are_called(name: str, row: Any) -> None:
    roles = grants(identity(name, row.field))

    assert owner(below(roles, ROLE, "a-name", id="x")) == ResourceOwner(name, row.field)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (below(None, resource_types.VAULT, "vault-vault", id="x"), ResourceOwner()),
        (grants(None), ResourceOwner()),
        (cluster(), ResourceOwner("hc1")),
        (below(cluster(), resource_types.INFRASTRUCTURE, "hc1-kms"), ResourceOwner("hc1")),
        (below(cluster_side(), resource_types.NAMESPACE, "hc1-cluster-side-namespace"), ResourceOwner("hc1")),
        (below(cluster_side(), "class", "hc1-cluster-side-disk-class"), ResourceOwner("hc1", "disk")),
        (below(cluster_side(), "probe", "hc1-cluster-side-probe-kms-2"), KMS),
        (below(cluster_side(), "user", "hc1-cluster-side-workload-kms"), ResourceOwner("hc1")),
        (identity("hc1", "diskMSIClientID"), ResourceOwner("hc1", "diskMSIClientID")),
        (identity("hc1", "acrPull"), ResourceOwner("hc1", "acrPull")),
        (workload("hc1", "kms"), KMS),
    ],
    ids=lambda value: value["urn"].rpartition("::")[2] if isinstance(value, dict) else None,
)
def test_an_owner_is_the_component_that_a_resource_is_below(resource: Any, expected: ResourceOwner) -> None:
    assert owner(resource) == expected


def test_a_resource_without_known_parents_is_nobodys() -> None:
    assert Ownership({}).owner(identity("hc1", "kms")["urn"]) == ResourceOwner()


@pytest.mark.parametrize(
    ("roles", "holder"),
    [
        (grants(identity("hc1", "kms")), KMS),
        (grants(identity("hc1", "kms"), "reader"), KEY_VAULT_USER),
        (grants(None), KEY_VAULT_USER),
        (grants(identity("hc1", ATTACHED.field), "attacher-roles"), ResourceOwner("hc1", ATTACHED.attached_by or "")),
    ],
)
def test_a_role_is_held_by_whose_principal_it_is_for(roles: Any, holder: ResourceOwner) -> None:
    role = below(roles, ROLE, "a-name", id="x")

    assert Ownership.of(with_parents(role)).holder(role["urn"]) == holder


def test_what_waits_for_its_deletion_has_no_owner() -> None:
    first, second = (below(identity("hc1", "kms"), ROLE, name, id=name) for name in ("one", "two"))
    first["delete"] = True

    assert by_owner(with_parents(first, second), ROLE) == {KMS: [second]}
