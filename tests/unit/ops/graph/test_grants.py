"""Role assignments in the state: who holds them, and what their scopes are called."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import OPTIONAL
from identity.naming import control_plane_identity_name, role_definition_id
from identity.roles import CONTRIBUTOR_ROLE, MANAGED_HSM_CRYPTO_USER
from ops.graph.grants import RoleAtScope, grants, scope_name

GROUP = "/subscriptions/s/resourceGroups/hc1-managed"
[ATTACHED] = [row for row in OPTIONAL if row.attached_by]


def assignment(parent: str, **changes: Any) -> Any:
    """A role assignment in the state, below a component."""
    return {
        "urn": f"urn:pulumi:dev::idstack::azure-native:authorization:RoleAssignment::{parent}-managed",
        "type": "azure-native:authorization:RoleAssignment",
        "custom": True,
        "parent": f"urn:pulumi:dev::idstack::idstack:azure:RoleGrants::{parent}",
        "inputs": {"scope": GROUP, "roleDefinitionId": role_definition_id("s", CONTRIBUTOR_ROLE.guid)},
        **changes,
    }


def test_a_grant_belongs_to_the_component_of_its_identity() -> None:
    found = grants([assignment("hc1-ingress-roles")])

    assert found == {"hc1-ingress": [RoleAtScope("Contributor", CONTRIBUTOR_ROLE.guid, GROUP)]}


def test_the_right_to_attach_an_identity_belongs_to_who_attaches_it() -> None:
    assert ATTACHED.attached_by is not None
    found = grants([assignment(f"hc1-{ATTACHED.name}-attacher-roles")])

    assert list(found) == [control_plane_identity_name("hc1", ATTACHED.attached_by)]


def test_an_assignment_that_waits_for_its_deletion_does_not_count() -> None:
    assert grants([assignment("hc1-ingress-roles", delete=True)]) == {}


def test_a_role_that_this_program_does_not_know_is_named_by_its_guid() -> None:
    inputs = {"scope": GROUP, "roleDefinitionId": role_definition_id("s", "another")}

    assert grants([assignment("hc1-ingress-roles", inputs=inputs)])["hc1-ingress"][0].role == "another"


def test_a_role_in_a_managed_hsm_has_no_arm_id() -> None:
    found = grants(
        [
            {
                "urn": "urn:pulumi:dev::idstack::idstack:index:HsmRoleAssignment::hc1-kms-roles-kms-vault-hsm",
                "type": "idstack:index:HsmRoleAssignment",
                "custom": True,
                "parent": "urn:pulumi:dev::idstack::idstack:azure:ControlPlaneIdentity::hc1-kms",
                "inputs": {"hsm": "my-hsm", "scope": "/keys/etcd", "roleDefinition": MANAGED_HSM_CRYPTO_USER},
            }
        ]
    )

    assert found == {"hc1-kms": [RoleAtScope("Managed HSM Crypto User", MANAGED_HSM_CRYPTO_USER, "my-hsm/keys/etcd")]}


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
