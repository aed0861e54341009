"""Derived names against HyperShift's own vectors."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity import naming
from identity.clouds import CLOUDS

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


_LETTERS = st.characters(codec="ascii", categories=["L", "N"], include_characters="-_.()")
_segment = st.text(_LETTERS, min_size=1).filter(lambda text: text.strip("."))
_group = st.text(_LETTERS, min_size=1, max_size=90).filter(lambda text: not text.endswith("."))


@given(st.uuids().map(str), _group, st.lists(_segment, min_size=1, max_size=3))
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


# What changes the path or the host of an address, ends a line or a string, or looks like another character.
_FOREIGN = st.sampled_from(
    [*"?#%@:;&=+\\<>|*\"'$!,~^`[]{}\n\r\t\0\x7f\x85\u2028\u00a0\u0430\uff0e", "/../", "//", " /", "/ "]
)
_PARTS = ("subscription", "rg", "Microsoft.KeyVault", "vaults", "name")


@given(st.sampled_from(range(5)), st.integers(0, 20), _FOREIGN)
def test_no_part_of_an_arm_id_has_a_character_that_azure_does_not_take(part: int, at: int, foreign: str) -> None:
    parts = list(_PARTS)
    parts[part] = parts[part][:at] + foreign + parts[part][at:]
    text = "/subscriptions/{}/resourceGroups/{}/providers/{}/{}/{}".format(*parts)

    with pytest.raises(ValueError, match="is not a resource id"):
        naming.parse_arm_id(text)


@pytest.mark.parametrize(
    ("group", "name"),
    [("..", "kv"), (".", "kv"), ("rg.", "kv"), ("r" * 91, "kv"), ("rg", ".."), ("rg", "."), ("rg", "..."), ("rg", " ")],
)
def test_a_step_of_a_path_is_no_name(group: str, name: str) -> None:
    with pytest.raises(ValueError, match="is not a resource id"):
        naming.parse_arm_id(naming.vault_id("s", group, name))


@given(st.text())
def test_a_vaults_id_makes_no_other_host(name: str) -> None:
    cloud = CLOUDS["AzurePublicCloud"]
    try:
        found = naming.parse_vault_id(naming.vault_id("s", "rg", name)).name
    except ValueError:
        return
    assert urlsplit(cloud.vault_uri(found)).hostname == f"{name}.vault.azure.net".lower()


@pytest.mark.parametrize(
    "other",
    [
        naming.managed_identity_id("s", "rg", "kv-dev"),
        *(
            naming.vault_id("s", "rg", name)
            for name in ("kv", "k" * 25, "9kv", "kv-", "k--v", "evil.example", "kv dev", "kv_dev")
        ),
    ],
)
def test_what_no_vault_is_called_or_is_something_else_is_no_vaults_id(other: str) -> None:
    with pytest.raises(ValueError, match="is not the id of a key vault"):
        naming.parse_vault_id(other)
