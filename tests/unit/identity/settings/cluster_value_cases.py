"""Single values of a hosted cluster; see `value_cases.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.unit.identity.settings.value_cases import CLUSTER, ValueCase
from tests.unit.identity.settings.world import KEY_VERSION

CLUSTER_CASES: Final[Mapping[str, ValueCase]] = {
    "managed resource group": ValueCase(
        paths=(f"{CLUSTER}resourceGroup",),
        rule="managed-resource-group",
        bad=("x", "rg.", "a/b", "x" * 91),
        good=("rg", "x" * 90),
    ),
    "cluster": ValueCase(
        paths=(f"{CLUSTER}name",),
        rule="cluster-name",
        bad=("HC1", "a_b", "-hc", "a..b", "x" * 55, 1),
        good=("a", "x" * 54, "a.b-c"),
        also={f"{CLUSTER}infraID": "infra", f"{CLUSTER}namespace": "n"},
    ),
    "namespace": ValueCase(
        paths=(f"{CLUSTER}namespace",),
        rule="namespace",
        bad=("My", "a.b", "a-", "x" * 64),
        good=("n",),
    ),
    "infraID": ValueCase(
        paths=(f"{CLUSTER}infraID",),
        rule="infra-id",
        bad=("Infra", "a.b", "-a", "x" * 254),
        good=("x" * 253,),
    ),
    "issuer": ValueCase(
        paths=(f"{CLUSTER}issuerURL",),
        rule="issuer-url",
        bad=(
            "https://kubernetes.default.svc",
            "https://127.0.0.1/oidc",
            "https://[::1]/oidc",
            "https://issuer",
            "http://oidc.example.com",
            "https://oidc.example.com/?a=b",
            "https://me@oidc.example.com",
            "https://oidc.example.com/" + "a" * 231,
        ),
        good=("https://oidc.example.com/" + "a" * 230, "https://oidc.example.com/"),
    ),
    "encoding": ValueCase(
        paths=(f"{CLUSTER}objectEncoding",),
        rule="choice",
        bad=("utf8", "UTF-8", "Base64", "ascii"),
        good=("utf-8", "base64", "hex"),
    ),
    "key": ValueCase(
        paths=(f"{CLUSTER}kms__activeKey__keyName",),
        rule="key-name",
        bad=("a_b", "x" * 128),
        good=("k", "x" * 127),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyVersion": KEY_VERSION}},
    ),
    "version": ValueCase(
        paths=(f"{CLUSTER}kms__activeKey__keyVersion",),
        rule="key-version",
        bad=("latest", "0" * 32),
        good=(KEY_VERSION.upper(),),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyName": "etcd"}},
    ),
    "secret": ValueCase(
        paths=(f"{CLUSTER}identities__ingress__secretName",),
        rule="secret-name",
        bad=("a.b", "a_b", "x" * 128),
        good=("s", "x" * 127),
    ),
    "source": ValueCase(
        paths=(f"{CLUSTER}identities__ingress__source",),
        rule="choice",
        bad=("managedIdentity", "vault"),
        good=("entra-application",),
    ),
    "permission": ValueCase(
        paths=("allowCredentialLoss",),
        rule="cluster-name",
        bad=("HC1", "*"),
        good=("hc1", "gone"),
        in_list=True,
    ),
}
