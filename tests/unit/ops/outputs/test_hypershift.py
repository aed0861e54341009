"""What HyperShift's CLI gets of one hosted cluster, and what it has no flag for."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from ops.outputs.hypershift import HostedClusterExport
from tests.unit.ops.commands.test_export import described


def exported(**changes: Any) -> HostedClusterExport:
    """`hc1` with changes of its specification: `azure` are those of the platform, `kms` those of the keys."""
    other = copy.deepcopy(described())
    spec = other["hostedClusterSpec"]
    spec["platform"]["azure"] |= changes.get("azure", {})
    spec["secretEncryption"]["kms"]["azure"] |= changes.get("kms", {})
    if changes.get("without_kms"):
        del spec["secretEncryption"]
    return HostedClusterExport("hc1", other, Path())


def test_without_kms_the_cli_makes_a_key_of_its_own() -> None:
    cluster = exported(without_kms=True)

    assert {"--kms-credentials-secret-name", "--encryption-key-id"}.isdisjoint(cluster.create.arguments)
    _, infrastructure = cluster.files["--infra-json"]
    assert "kmsClientID" not in infrastructure
    assert list(cluster.obstacles()) == []


@pytest.mark.parametrize(
    ("cluster", "host"),
    [
        (exported(kms={"keyVaultType": "ManagedHSM"}), "managedhsm.azure.net"),
        (HostedClusterExport("hc1", described(cloud="AzureUSGovernmentCloud"), Path()), "vault.usgovcloudapi.net"),
    ],
)
def test_a_key_is_named_by_its_url(cluster: HostedClusterExport, host: str) -> None:
    arguments = cluster.create.arguments

    key = arguments[arguments.index("--encryption-key-id") + 1]
    assert key == f"https://kv-etcd-dev.{host}/keys/hc1-etcd/0123456789abcdef0123456789abcdef"


def test_private_access_by_private_link_has_flags() -> None:
    link = {"natSubnetID": "/subscriptions/x", "additionalAllowedSubscriptions": ["a", "b"]}
    cluster = exported(azure={"topology": "PublicAndPrivate", "private": {"type": "PrivateLink", "privateLink": link}})

    arguments = cluster.create.arguments
    at = arguments.index("--endpoint-access")
    assert arguments[at : at + 6] == [
        *("--endpoint-access", "PublicAndPrivate", "--endpoint-access-private-nat-subnet-id", "/subscriptions/x"),
        *("--endpoint-access-private-additional-allowed-subscriptions", "a,b"),
    ]
    assert list(cluster.obstacles()) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"azure": {"topology": "Private", "private": {"type": "Swift", "swift": {"podNetworkInstance": "pni"}}}},
            "it supports private access by PrivateLink only, but this cluster uses Swift",
        ),
        (
            {"kms": {"keyVaultAccess": "Private"}},
            "it leaves out keyVaultAccess, which means Public, but this cluster's is Private",
        ),
    ],
)
def test_what_the_cli_has_no_flag_for_is_an_obstacle(changes: dict[str, Any], reason: str) -> None:
    assert list(exported(**changes).obstacles()) == [reason]


def test_a_name_that_the_cli_refuses_is_an_obstacle() -> None:
    cluster = HostedClusterExport("hc.1", described("hc.1"), Path())

    assert list(cluster.obstacles()) == ["it accepts no name with a dot"]
