"""Derived names against HyperShift's own vectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity import naming

_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


def test_a_role_assignment_is_named_as_hypershift_names_it() -> None:
    # cmd/util/azure.go:90-93
    scope = f"/subscriptions/{_SUBSCRIPTION}/resourceGroups/rg"

    assert naming.role_assignment_name("test-infra", "cpo", scope) == "bd88207c-c504-5894-ba6a-7f68c8a261b9"


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (naming.control_plane_namespace("clusters", "my.hc"), "clusters-my-hc"),
        (naming.credentials_secret_name("azure-disk", "hc.1"), "azure-disk-hc-1-json"),
        (naming.kebab("controlPlaneOperator"), "control-plane-operator"),
        (naming.node_resource_group("aks", "mgmt", "eastus"), "MC_aks_mgmt_eastus"),
        (naming.node_resource_group("g", "a" * 71 + ".", "eastus"), "MC_g_" + "a" * 71 + "._ea"),
        (naming.dns_prefix("aks_mgmt-dev"), "aks-mgmt-dev"),
        (naming.dns_prefix("a" * 53 + "_b"), "a" * 53),
        (
            naming.vault_id("s", "rg", "kv"),
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.KeyVault/vaults/kv",
        ),
        (
            naming.role_definition_id("s", "b24988ac-6180-42a0-ab88-20f7382dd24c"),
            "/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c",
        ),
    ],
)
def test_names_follow_their_rule(got: str, expected: str) -> None:
    assert got == expected


_segment = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters="-_."), min_size=1)


@given(_segment, _segment, st.lists(_segment, min_size=1, max_size=3))
def test_an_arm_id_taken_apart_gives_its_parts(subscription: str, group: str, names: list[str]) -> None:
    resource_type = "/".join(["Microsoft.Network", "virtualNetworks", "subnets", "x"][: len(names) + 1])

    parsed = naming.parse_arm_id(naming.resource_id(subscription, group, resource_type, *names))

    assert parsed == naming.ArmId(subscription, group, resource_type, tuple(names))


@pytest.mark.parametrize(
    "text", ["", "vnet", "/subscriptions/s/resourceGroups/rg", "/subscriptions/s/resourceGroups/rg/providers/N/t"]
)
def test_what_is_not_a_resource_id_is_refused_with_its_form(text: str) -> None:
    with pytest.raises(ValueError, match="is not a resource id: /subscriptions/<id>/resourceGroups/"):
        naming.parse_arm_id(text)
