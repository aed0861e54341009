"""A key that encrypts etcd changes its vault: the role on the vault before stays until HyperShift has finished."""

from __future__ import annotations

from typing import Any

import pytest

from identity.settings import Settings
from identity.settings.rules.key_rotation import dropped_keys, dropped_places, finished, moved_keys, unfinished
from tests.unit.golden_report import reviewed
from tests.unit.identity.settings import world
from tests.unit.identity.settings.world import ABSENT, KEY_VERSION, configuration, domains, load

BACKUP = "hostedClusters[0].kms.backupKey"


def url(vault: str) -> str:
    return f"https://{vault}.vault.azure.net/keys/etcd/{KEY_VERSION}"


def key(vault: str) -> dict[str, str]:
    return {"keyVaultName": vault, "keyName": "etcd", "keyVersion": KEY_VERSION}


def settings(active: str, backup: str | None = None) -> Settings:
    kms = {"activeKey": url(active), **({"backupKey": url(backup)} if backup else {})}
    return load(configuration(hostedClusters__0__kms=kms))


def last(active: str, backup: str | None = None) -> Any:
    """Outputs of the last complete run."""
    keys = {"activeKey": key(active), **({"backupKey": key(backup)} if backup else {})}
    return {"hostedClusters": {"hc1": {"encryptionKeys": keys}}}


def hosted_cluster(
    written: str | None, active: str | None = None, target: str | None = None, state: str | None = None
) -> dict[str, Any]:
    """The HostedCluster: the key of its specification, and what HyperShift's status says."""
    status = {
        name: {"provider": "Azure", "azure": key(vault)}
        for name, vault in (("activeKey", active), ("targetKey", target))
        if vault is not None
    }
    encryption = (
        {"type": "kms", "kms": {"provider": "Azure", "azure": {"activeKey": key(written)}}} if written else None
    )
    return {
        "spec": {"secretEncryption": encryption},
        "status": {"secretEncryption": {**status, "history": [{"state": state}] if state else None}},
    }


@pytest.mark.parametrize(
    ("now", "moved"),
    [
        (("kv-a", None), False),
        (("kv-b", None), True),
        (("kv-b", "kv-a"), False),
        (("kv-b", "KV-A"), False),
        (("kv-b", "kv-c"), True),
    ],
)
def test_a_key_leaves_its_vault_only_if_it_stays_as_the_backup_key(now: tuple[str, str | None], moved: bool) -> None:
    problems = reviewed(moved_keys(settings(*now), last("kv-a")))

    assert problems == ([(BACKUP, "kms-key-moved")] if moved else [])


def hsm(name: str) -> str:
    return f"https://hsm-a.managedhsm.azure.net/keys/{name}/{KEY_VERSION}"


@pytest.mark.parametrize(
    ("kms", "moved"),
    [
        ({"activeKey": hsm("ETCD").replace(KEY_VERSION, "f" * 32)}, False),
        ({"activeKey": hsm("next")}, True),
        ({"activeKey": hsm("next"), "backupKey": hsm("etcd")}, False),
    ],
)
def test_in_an_hsm_another_key_leaves_its_role_as_another_vault_does(kms: dict[str, str], moved: bool) -> None:
    wanted = load(configuration(hostedClusters__0__kms=kms))
    found = hosted_cluster("hsm-a", active="hsm-a")

    assert reviewed(moved_keys(wanted, last("hsm-a"))) == ([(BACKUP, "kms-key-moved")] if moved else [])
    assert reviewed(unfinished(wanted, 0, found)) == ([(BACKUP, "kms-rotation-unfinished")] if moved else [])


def test_without_a_key_before_or_kms_now_nothing_moves() -> None:
    keyless: list[Any] = [{}, {"hostedClusters": {}}, {"hostedClusters": {"hc1": {"hostedClusterSpec": {}}}}]
    for outputs in keyless:
        assert list(moved_keys(settings("kv-b"), outputs)) == []
    without = load(configuration(hostedClusters__0__kms=ABSENT))

    assert list(moved_keys(without, last("kv-a"))) == [], "it loses a credential instead"
    assert list(unfinished(without, 0, hosted_cluster("kv-a", active="kv-a"))) == []


def test_the_vaults_that_lose_the_role_are_named() -> None:
    [cluster] = settings("kv-c", "kv-b").hosted_clusters

    assert dropped_places(cluster, last("kv-b", "kv-a")["hostedClusters"]["hc1"]["encryptionKeys"]) == ["kv-a"]
    assert dropped_places(cluster, None) == []


@pytest.mark.parametrize(
    ("now", "found", "refused"),
    [
        (("kv-b", "kv-a"), hosted_cluster("kv-a", active="kv-a"), False),
        (("kv-b", "kv-a"), hosted_cluster("kv-b", active="kv-a"), False),
        (("kv-b", "kv-a"), hosted_cluster("kv-b", active="kv-a", target="kv-b", state="Migrating"), False),
        (("kv-b", None), hosted_cluster("kv-b", active="kv-a"), True),
        (("kv-b", None), hosted_cluster("kv-b", active="kv-a", target="kv-b", state="Migrating"), True),
        (("kv-b", None), hosted_cluster("kv-b", active="kv-b", state="Completed"), False),
        (("kv-a", None), hosted_cluster("kv-b", active="kv-a"), True),
        (("kv-a", None), hosted_cluster("kv-a", active="kv-a", target="kv-b", state="WritePromote"), True),
        (("kv-a", "kv-b"), hosted_cluster("kv-b", active="kv-a", target="kv-b"), False),
        (("kv-c", "kv-b"), hosted_cluster("kv-b", active="kv-a", target="kv-b", state="Migrating"), True),
        (("kv-a", None), hosted_cluster("kv-a"), False),
        (("kv-a", None), {"spec": {}}, False),
    ],
)
def test_a_vault_keeps_its_role_as_long_as_hypershift_uses_its_key(
    now: tuple[str, str | None], found: dict[str, Any], refused: bool
) -> None:
    problems = reviewed(unfinished(settings(*now), 0, found))

    assert problems == ([(BACKUP, "kms-rotation-unfinished")] if refused else [])


def test_an_operator_that_does_not_record_keys_gets_none_in_another_vault() -> None:
    problems = reviewed(unfinished(settings("kv-b", "kv-a"), 0, hosted_cluster("kv-a")))

    assert problems == [("hostedClusters[0].kms.activeKey", "kms-rotation-untracked")]


@pytest.mark.parametrize(
    ("now", "found", "told"),
    [
        (("kv-b", "kv-a"), hosted_cluster("kv-b", active="kv-b", state="Completed"), True),
        (("kv-b", "kv-a"), hosted_cluster("kv-b", active="kv-a", target="kv-b", state="Migrating"), False),
        (("kv-b", "kv-a"), hosted_cluster("kv-b", active="kv-b", target="kv-a"), False),
        (("kv-b", "kv-a"), hosted_cluster("kv-b"), False),
        (("kv-b", None), hosted_cluster("kv-b", active="kv-b", state="Completed"), False),
    ],
)
def test_a_backup_key_that_nobody_needs_is_told(now: tuple[str, str | None], found: dict[str, Any], told: bool) -> None:
    text = finished(settings(*now), 0, found)

    assert (text is not None) is told
    assert text is None or "`.venv/bin/idstack pulumi -- config rm --path 'hostedClusters[0].kms.backupKey'`" in text


WRITTEN = {"releaseImage": "quay.io/ocp/release:4.20", "pullSecret": "pull", "serviceAccountSigningKey": "signing-key"}
ENCRYPTED: Any = {"hostedClusters": {"hc1": {"encryptionKeySecret": "hc1-etcd-encryption-key"}}}


def encrypting(given: dict[str, Any], kms: Any = ABSENT) -> Settings:
    """A HostedCluster that the stack applies, with or without KMS."""
    cluster = world.hosted_cluster(**domains(), hostedCluster=given, kms=kms)
    return load(configuration(clusterSide="hypershift", hostedClusters=[cluster]))


@pytest.mark.parametrize(
    ("given", "kms", "refused"),
    [
        (WRITTEN, ABSENT, None),
        (WRITTEN | {"etcdEncryption": "none"}, ABSENT, "hostedCluster.etcdEncryption"),
        (WRITTEN, {"activeKey": url("kv-a")}, "kms"),
        ({"file": "hc1.yaml"}, ABSENT, "hostedCluster.releaseImage"),
    ],
    ids=["as before", "none", "KMS", "a file"],
)
def test_a_key_that_encrypts_etcd_stays(given: dict[str, Any], kms: Any, refused: str | None) -> None:
    found = reviewed(list(dropped_keys(encrypting(given, kms), ENCRYPTED)))

    assert found == ([] if refused is None else [(f"hostedClusters[0].{refused}", "etcd-encryption-changed")])
    assert list(dropped_keys(load(configuration(hostedClusters=[])), ENCRYPTED)) == [], "it goes with its cluster"
