"""Single values: what each key accepts, and what a user reads who writes something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.identity.settings.cluster_kinds import CLUSTER_KINDS
from tests.unit.identity.settings.kinds import CLUSTER, PLACEHOLDER, STACK_KINDS, ZEROS, Kind
from tests.unit.identity.settings.world import (
    KEY_VERSION,
    NETWORK,
    SUBSCRIPTION,
    VNET,
    block,
    configuration,
    path_of,
    refusals,
    setting,
    shown,
)

KINDS = {**STACK_KINDS, **CLUSTER_KINDS}
RESOURCE_ID = "a resource id /subscriptions/<id>/resourceGroups/<name>/providers/Microsoft."


def _changes(kind: Kind, path: str, value: Any) -> dict[str, Any]:
    return {**kind.also, path: [value] if kind.in_list else value}


def _bad() -> Iterator[Any]:
    for name, kind in KINDS.items():
        for path in kind.paths:
            for value, told in kind.bad.items():
                offered, reason = (told, "") if isinstance(told, str) else told
                yield pytest.param(kind, path, value, offered, reason, id=f"{name} {path} {str(value)[:30]}")


@pytest.mark.parametrize(("kind", "path", "value", "offered", "reason"), list(_bad()))
def test_a_bad_value_is_one_problem_with_what_is_accepted_and_the_command_that_fixes_it(
    kind: Kind, path: str, value: Any, offered: str, reason: str
) -> None:
    key = path_of(path) + ("[0]" if kind.in_list else "")
    hint = f"; {kind.hint}" if kind.hint and offered == kind.blank else ""
    found = shown(value) + (f": {reason}" if reason else "")

    assert refusals(configuration(**_changes(kind, path, value))) == [
        block(key, found, kind.accepted, setting(key, offered) + hint)
    ]


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        pytest.param(kind, path, value, id=f"{name} {path} {str(value)[:30]}")
        for name, kind in KINDS.items()
        for path in kind.paths
        for value in kind.good
    ],
)
def test_a_good_value_is_accepted(kind: Kind, path: str, value: Any) -> None:
    assert refusals(configuration(**_changes(kind, path, value))) == []


_IDS = {
    f"{CLUSTER}vnetID": ("Network/virtualNetworks/<name>", "az network vnet show -g <group> -n <name>"),
    f"{CLUSTER}securityGroupID": ("Network/networkSecurityGroups/<name>", "az network nsg show -g <group> -n <name>"),
    f"{CLUSTER}subnetID": (
        "Network/virtualNetworks/<name>/subnets/<name>",
        "az network vnet subnet show -g <group> --vnet-name <name> -n <name>",
    ),
    f"{CLUSTER}identities__imageRegistry__resourceId": (
        "ManagedIdentity/userAssignedIdentities/<name>",
        "az identity show -g <group> -n <name>",
    ),
}
_GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/identity/providers/Microsoft.ManagedIdentity"
_IDENTITY = f"{CLUSTER}identities__imageRegistry__resourceId"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (f"{CLUSTER}vnetID", "vnet-1", ""),
        (f"{CLUSTER}vnetID", f"{VNET}/", ""),
        (f"{CLUSTER}vnetID", f"{VNET}/subnets/a", "the id of a Microsoft.Network/virtualNetworks/subnets"),
        (f"{CLUSTER}vnetID", VNET.replace("vnet-1", "v"), '"v" is no name in virtualNetworks'),
        (f"{CLUSTER}vnetID", VNET.replace("/net/", "/net./"), '"net." is no name in resource group'),
        (f"{CLUSTER}vnetID", VNET.replace(SUBSCRIPTION, ZEROS), f"the subscription is {PLACEHOLDER}"),
        (f"{CLUSTER}vnetID", VNET.replace(SUBSCRIPTION, "mine"), ""),
        (f"{CLUSTER}subnetID", VNET, "the id of a Microsoft.Network/virtualNetworks"),
        (f"{CLUSTER}subnetID", f"{VNET}/subnets/-a", '"-a" is no name in subnets'),
        (f"{CLUSTER}subnetID", f"{VNET}/subnets/a.", '"a." is no name in subnets'),
        (f"{CLUSTER}securityGroupID", VNET, "the id of a Microsoft.Network/virtualNetworks"),
        (
            f"{CLUSTER}securityGroupID",
            f"{NETWORK}/networkSecurityGroups/n%",
            '"n%" is no name in networkSecurityGroups',
        ),
        (_IDENTITY, "ciro", ""),
        (_IDENTITY, f"{_GROUP}/userAssignedIdentities/ab", '"ab" is no name in userAssignedIdentities'),
    ],
)
def test_a_resource_id_is_checked_down_to_the_names_in_it(path: str, value: str, reason: str) -> None:
    accepted, command = _IDS[path]
    imported = {"source": "managed-identity", "resourceId": "", "credential": {"file": "x"}}
    also = {f"{CLUSTER}identities": {"imageRegistry": imported}} if path == _IDENTITY else {}
    key = path_of(path)

    assert refusals(configuration(**also, **{path: value})) == [
        block(
            key,
            shown(value) + (f": {reason}" if reason else ""),
            f"{RESOURCE_ID}{accepted}",
            f"{setting(key, '<resource id>')}; `{command} --query id` prints it",
        )
    ]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://kv-etcd.vault.azure.net/keys/etcd", ""),
        (f"http://kv-etcd.vault.azure.net/keys/etcd/{KEY_VERSION}", ""),
        (f"https://kv-etcd.vault.azure.net/secrets/etcd/{KEY_VERSION}", ""),
        (f"https://kv-etcd.vault.azure.cn/keys/etcd/{KEY_VERSION}", "the vaults of this cloud are at vault.azure.net"),
        (f"https://kv_etcd.vault.azure.net/keys/etcd/{KEY_VERSION}", "keyVaultName: not of the form for one"),
        (f"https://kv-etcd.vault.azure.net/keys/a_b/{KEY_VERSION}", "keyName: not of the form for one"),
        (f"https://kv-etcd.vault.azure.net/keys/etcd/{'0' * 32}", f"keyVersion: {PLACEHOLDER}"),
    ],
)
def test_the_url_of_an_encryption_key_is_checked_part_by_part(url: str, reason: str) -> None:
    key = "hostedClusters[0].kms.activeKey"

    assert refusals(configuration(hostedClusters__0__kms__activeKey=url)) == [
        block(
            key,
            f'"{url}"' + (f": {reason}" if reason else ""),
            "a mapping with keyVaultName, keyName and keyVersion, or the key's URL "
            "https://<vault>.<the cloud's vault suffix>/keys/<key>/<version>",
            f"{setting(key, '<url>')}; "
            "`az keyvault key show --vault-name <vault> --name <key> --query key.kid` prints it",
        )
    ]


def test_the_url_of_an_encryption_key_has_the_clouds_suffix() -> None:
    url = f"https://kv-etcd.vault.azure.cn/keys/etcd/{KEY_VERSION}"

    assert refusals(configuration(cloud="AzureChinaCloud", hostedClusters__0__kms__activeKey=url)) == []
