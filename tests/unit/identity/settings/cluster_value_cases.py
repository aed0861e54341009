"""Single values of a hosted cluster; see `value_cases.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.unit.identity.settings.value_cases import CLUSTER, ValueCase
from tests.unit.identity.settings.world import ABSENT, DNS, KEY_VERSION, OTHER

_CREATED_ISSUER: Final = {
    f"{CLUSTER}issuer": "create",
    f"{CLUSTER}issuerName": "hc1oidc",
    f"{CLUSTER}issuerURL": ABSENT,
    f"{CLUSTER}serviceAccountSigningKey": {},
}
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
    "infrastructure's maker": ValueCase(
        paths=(f"{CLUSTER}infrastructure",),
        rule="choice",
        bad=("created", "Existing", 1),
        good=("existing",),
    ),
    "address ranges": ValueCase(
        paths=(f"{CLUSTER}network__addressPrefix", f"{CLUSTER}network__subnetAddressPrefix"),
        rule="address-prefix",
        bad=("10.0.0.1/16", "10.0.0.0", "10.0.0.0/7", "10.0.0.0/30", "20.0.0.0/16", "169.254.0.0/16", "fd00::/64", 10),
        good=("10.0.0.0/16",),
        also={
            **{f"{CLUSTER}{key}": ABSENT for key in ("resourceGroup", "vnetID", "subnetID", "securityGroupID")},
            f"{CLUSTER}infrastructure": "create",
            f"{CLUSTER}network": {},
            f"{CLUSTER}dns": {"baseDomain": "example.com", "publicZoneID": f"{DNS}/dnszones/example.com"},
        },
    ),
    "issuer's maker": ValueCase(
        paths=(f"{CLUSTER}issuer",),
        rule="choice",
        bad=("created", "Create", ""),
        good=("existing",),
    ),
    "issuer's name": ValueCase(
        paths=(f"{CLUSTER}issuerName",),
        rule="issuer-name",
        bad=("ab", "x" * 25, "Hc1Oidc", "hc1-oidc"),
        good=("abc", "x" * 24),
        also={f"{CLUSTER}issuer": "create", f"{CLUSTER}issuerURL": ABSENT},
    ),
    "published keys": ValueCase(
        paths=(f"{CLUSTER}serviceAccountSigningKey__published",),
        rule="published-keys",
        bad=([], [2, 1], [1, 1], [1, 2, 3, 4]),
        good=([1], [1, 2], [1, 2, 7]),
        also=_CREATED_ISSUER,
    ),
    "leaked keys": ValueCase(
        paths=(f"{CLUSTER}serviceAccountSigningKey__leaked",),
        rule="leaked-keys",
        bad=([2, 1], [3, 3]),
        good=([], [2], [2, 3, 4, 7]),
        also=_CREATED_ISSUER,
    ),
    "signing key": ValueCase(
        paths=(f"{CLUSTER}serviceAccountSigningKey__signing",),
        rule="integer",
        bad=(0, "1", 1.5, 10000),
        good=(1,),
        also=_CREATED_ISSUER,
    ),
    "signing key's secret": ValueCase(
        paths=(f"{CLUSTER}serviceAccountSigningKey__vaultSecretName",),
        rule="secret-name",
        bad=("a.b", "a_b", "x" * 128),
        good=("s", "x" * 127),
        also={f"{CLUSTER}serviceAccountSigningKey": {}},
    ),
    "signing key's file": ValueCase(
        paths=(f"{CLUSTER}serviceAccountSigningKey__file",),
        rule="document-path",
        bad=("", "x" * 501, "-----BEGIN"),
        good=("/run/keys/sa.pem",),
        also={f"{CLUSTER}serviceAccountSigningKey": {}},
    ),
    "domain": ValueCase(
        paths=(f"{CLUSTER}dns__baseDomain", f"{CLUSTER}externalDnsDomain"),
        rule="domain-name",
        bad=("example", "Example.com", "a_b.example.com", "-a.example.com", "example.c0m", "example.com.", "a..com"),
        good=("xn--bcher-kva.example",),
    ),
    "Secret of Kubernetes": ValueCase(
        paths=(f"{CLUSTER}hostedCluster__serviceAccountSigningKey",),
        rule="kubernetes-secret-name",
        bad=("Key", "a_b", "-a", "a..b", "x" * 254),
        good=("a", "x" * 253, "a.b-c"),
        also={"clusterSide": "hypershift", f"{CLUSTER}hostedCluster": {"file": "hc1.yaml"}},
    ),
    "encoding": ValueCase(
        paths=(f"{CLUSTER}objectEncoding", f"{CLUSTER}identities__ingress__objectEncoding"),
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
    "backup key": ValueCase(
        paths=(f"{CLUSTER}kms__backupKey__keyName",),
        rule="key-name",
        bad=("a_b",),
        good=("k",),
        also={f"{CLUSTER}kms__backupKey": {"keyVaultName": "kv-etcd", "keyVersion": KEY_VERSION}},
    ),
    "backup vault's group": ValueCase(
        paths=(f"{CLUSTER}kms__backupKeyVaultResourceGroup",),
        rule="resource-group",
        bad=("rg.",),
        good=("rg",),
    ),
    "key vault type": ValueCase(
        paths=(f"{CLUSTER}kms__keyVaultType",),
        rule="choice",
        bad=("managedHsm", "HSM"),
        good=("KeyVault",),
    ),
    "key vault access": ValueCase(
        paths=(f"{CLUSTER}kms__keyVaultAccess",),
        rule="choice",
        bad=("private", "", "Swift"),
        good=("Public", "Private"),
    ),
    "topology": ValueCase(
        paths=(f"{CLUSTER}topology",),
        rule="choice",
        bad=("public", "PrivateAndPublic"),
        good=("Public",),
    ),
    "private access": ValueCase(
        paths=(f"{CLUSTER}private__type",),
        rule="choice",
        bad=("PrivateLinkService", "swift"),
        good=("Swift",),
        also={f"{CLUSTER}topology": "Private", f"{CLUSTER}private__swift": {"podNetworkInstance": "pni"}},
    ),
    "pod network instance": ValueCase(
        paths=(f"{CLUSTER}private__swift__podNetworkInstance",),
        rule="pod-network-instance",
        bad=("Pni", "a.b", "x" * 64),
        good=("x" * 63,),
        also={f"{CLUSTER}topology": "PublicAndPrivate", f"{CLUSTER}private__type": "Swift"},
    ),
    "allowed subscription": ValueCase(
        paths=(f"{CLUSTER}private__privateLink__additionalAllowedSubscriptions",),
        rule="subscription-id",
        bad=("mine",),
        good=(OTHER,),
        in_list=True,
        also={f"{CLUSTER}topology": "Private", f"{CLUSTER}private__type": "PrivateLink"},
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
