"""The keys of a hosted cluster's issuer and of the key that signs its service accounts' tokens."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import ABSENT, configuration, hosted_cluster, load, refusals, report

KEY = "hostedClusters[0].serviceAccountSigningKey"


def created(**key: Any) -> dict[str, Any]:
    changes: dict[str, Any] = {"issuer": "create", "issuerName": "hc1oidc", "issuerURL": ABSENT}
    return configuration(
        **{f"hostedClusters__0__{name}": value for name, value in changes.items()},
        **({"hostedClusters__0__serviceAccountSigningKey": key} if key else {}),
    )


def existing(**key: Any) -> dict[str, Any]:
    return configuration(hostedClusters__0__serviceAccountSigningKey=key)


@pytest.mark.parametrize(
    ("cloud", "suffix"),
    [
        ("AzurePublicCloud", "core.windows.net"),
        ("AzureUSGovernmentCloud", "core.usgovcloudapi.net"),
        ("AzureChinaCloud", "core.chinacloudapi.cn"),
    ],
)
def test_the_address_of_a_created_issuer_is_filled_in(cloud: str, suffix: str) -> None:
    kms = {"keyVaultName": "kv-etcd", "keyName": "etcd", "keyVersion": "0123456789abcdef0123456789abcdef"}
    cluster = load({**created(), "cloud": cloud} | _with_key(created(), kms)).hosted_clusters[0]

    assert cluster.issuer_url == f"https://hc1oidc.blob.{suffix}/hc1oidc"
    assert cluster.signing_key is not None
    assert (cluster.signing_key.published, cluster.signing_key.signing) == ((1,), 1)
    assert cluster.signing_key_secret == "hc1-sa-signing-key"


def _with_key(config: dict[str, Any], kms: dict[str, str]) -> dict[str, Any]:
    cluster = {**config["hostedClusters"][0], "kms": {"activeKey": kms}}
    return {"hostedClusters": [cluster]}


def test_an_existing_issuer_has_a_signing_key_only_if_it_is_given() -> None:
    assert load(configuration()).hosted_clusters[0].signing_key is None
    assert load(existing(file="sa.pem")).hosted_clusters[0].signing_key is not None


def test_a_created_issuer_has_a_name_and_an_existing_one_an_address() -> None:
    unnamed = configuration(hostedClusters__0__issuer="create", hostedClusters__0__issuerURL=ABSENT)
    named = configuration(hostedClusters__0__issuerName="hc1oidc")

    assert refusals(unnamed) == [("hostedClusters[0].issuerName", "issuer-name-missing")]
    assert refusals(named) == [("hostedClusters[0].issuerName", "issuer-name-unused")]
    assert refusals(configuration(hostedClusters__0__issuerURL=ABSENT)) == [("hostedClusters[0].issuerURL", "missing")]


def test_a_created_issuer_has_no_other_address() -> None:
    config = created()
    config["hostedClusters"][0]["issuerURL"] = "https://oidc.example.com/hc1"
    assert refusals(config) == [("hostedClusters[0].issuerURL", "issuer-url-of-created")]

    config["hostedClusters"][0]["issuerURL"] = "https://hc1oidc.blob.core.windows.net/hc1oidc"
    assert refusals(config) == []


def test_two_issuers_have_two_storage_accounts() -> None:
    clusters = [hosted_cluster(name, issuer="create", issuerName="oidc", issuerURL=ABSENT) for name in ("hc1", "hc2")]

    assert refusals(configuration(hostedClusters=clusters)) == [
        ("hostedClusters[1].issuerName", "duplicate-issuer-name")
    ]


@pytest.mark.parametrize(("key", "value"), [("vaultSecretName", "sa"), ("file", "sa.pem")])
def test_the_key_of_a_created_issuer_comes_from_nowhere_else(key: str, value: str) -> None:
    assert refusals(created(**{key: value})) == [(f"{KEY}.{key}", "signing-key-of-created-issuer")]


def test_the_key_that_signs_is_published() -> None:
    assert refusals(created(published=[1, 2], signing=2)) == []
    assert refusals(created(published=[1, 2], signing=3)) == [(f"{KEY}.signing", "signing-key-not-published")]


def test_a_leaked_key_is_not_published() -> None:
    assert refusals(created(published=[2], signing=2, leaked=[1])) == []
    assert refusals(created(published=[1, 2], signing=2, leaked=[1])) == [(f"{KEY}.published", "leaked-key-published")]
    assert refusals(created(leaked=[1])) == [(f"{KEY}.published", "leaked-key-published")]


@pytest.mark.parametrize(("key", "value"), [("published", [1, 2]), ("signing", 1), ("leaked", [2])])
def test_the_key_of_an_existing_issuer_has_no_number(key: str, value: Any) -> None:
    assert refusals(existing(file="sa.pem", **{key: value})) == [(f"{KEY}.{key}", "signing-key-of-existing-issuer")]


@pytest.mark.parametrize("key", [{}, {"file": "sa.pem", "vaultSecretName": "sa"}])
def test_the_key_of_an_existing_issuer_comes_from_one_place(key: dict[str, str]) -> None:
    assert refusals(existing(**key)) == [(KEY, "one-signing-key")]


def test_a_key_in_the_place_of_its_files_path_is_not_shown() -> None:
    written = report(existing(file="-----BEGIN RSA PRIVATE KEY-----\nMARKER" + "A" * 800))

    assert "MARKER" not in written
    assert "a string that is not shown because it may be a secret" in written
