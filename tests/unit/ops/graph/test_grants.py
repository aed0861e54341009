"""Role assignments in the state: who holds them, and what their scopes are called."""

from __future__ import annotations

from typing import Any

import pytest

from identity import resource_types
from identity.naming import role_definition_id
from identity.roles import CONTRIBUTOR_ROLE, MANAGED_HSM_CRYPTO_USER
from ops.graph.build import RoleAtScope, grants, scope_name
from ops.world.ownership import ResourceOwner
from tests.unit.ops.states import below, identity, with_parents
from tests.unit.ops.states import grants as role_grants

GROUP = "/subscriptions/s/resourceGroups/hc1-managed"
INGRESS = ResourceOwner("hc1", "ingress")
INGRESS_ROLES = role_grants(identity("hc1", "ingress"))


def assignment(roles: Any = INGRESS_ROLES, guid: str = CONTRIBUTOR_ROLE.guid, **changes: Any) -> list[Any]:
    """A role assignment in the state, below a `RoleGrants`, and what that is below."""
    inputs = {"scope": GROUP, "roleDefinitionId": role_definition_id("s", guid)}
    return with_parents(below(roles, resource_types.ROLE_ASSIGNMENT, "a-name", id="x", inputs=inputs, **changes))


def test_a_grant_is_of_the_identity_whose_component_made_it() -> None:
    assert grants(assignment()) == {INGRESS: [RoleAtScope("Contributor", CONTRIBUTOR_ROLE.guid, GROUP)]}


def test_an_assignment_that_waits_for_its_deletion_does_not_count() -> None:
    assert grants(assignment(delete=True)) == {}


def test_a_role_that_this_program_does_not_know_is_named_by_its_guid() -> None:
    assert grants(assignment(guid="another"))[INGRESS][0].role == "another"


def test_a_role_in_a_managed_hsm_has_no_arm_id() -> None:
    inputs = {"hsm": "my-hsm", "scope": "/keys/etcd", "roleDefinition": MANAGED_HSM_CRYPTO_USER}
    role = below(identity("hc1", "kms"), resource_types.HSM_ROLE_ASSIGNMENT, "a-name", id="x", inputs=inputs)

    assert grants(with_parents(role)) == {
        ResourceOwner("hc1", "kms"): [
            RoleAtScope("Managed HSM Crypto User", MANAGED_HSM_CRYPTO_USER, "my-hsm/keys/etcd")
        ]
    }


@pytest.mark.parametrize(
    ("scope", "name", "kind"),
    [
        (GROUP, "hc1-managed", "resource group"),
        (f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv-etcd", "kv-etcd", "key vault"),
        (f"{GROUP}/providers/Microsoft.Storage/storageAccounts/backups", "backups", "storage account"),
        (f"{GROUP}/providers/Microsoft.Network/dnsZones/example.com", "example.com", "dnszones"),
        ("/subscriptions/s", "s", "subscription"),
        ("my-hsm/keys/etcd", "my-hsm/keys/etcd", "managed HSM"),
    ],
)
def test_a_scope_has_a_name_and_a_kind(scope: str, name: str, kind: str) -> None:
    assert scope_name(scope) == (name, kind)
