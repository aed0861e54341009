"""Single values: where one stands, what its rule refuses, and what it accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.unit.identity.settings.world import ABSENT, DNS, KEY_VERSION, MANAGED_IDENTITY, OTHER, creation

ZEROS: Final = "00000000-0000-0000-0000-000000000000"
CLUSTER: Final = "hostedClusters__0__"


@dataclass(frozen=True)
class ValueCase:
    """One type of value: where it stands, values that break its rule, and good ones. `also` is set besides."""

    paths: tuple[str, ...]
    rule: str
    bad: tuple[Any, ...] = field(kw_only=True)
    good: tuple[Any, ...] = field(default=(), kw_only=True)
    also: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    in_list: bool = field(default=False, kw_only=True)


def _uuid(rule: str, path: str, **also: Any) -> ValueCase:
    return ValueCase(
        (path,),
        rule,
        bad=("somewhere", "contoso.onmicrosoft.com", OTHER[:-1], OTHER.replace("3", "g"), f"{{{OTHER}}}", ZEROS),
        also=also,
    )


_KEY_VAULT_USER = {"keyVaultUser": {"source": "existing", "clientId": OTHER, "objectId": OTHER}}
_UNNAMED_KUBECONFIG = {"managementCluster": {"resourceGroup": "aks", "name": "mgmt"}}
_CREATED = {"managementCluster": creation()}
_WAIVER = {
    "policy": "certificate-life",
    "resource": "hc1-ingress-entra-schedule",
    "reason": "until the new agency",
}
_CREATED_ISSUER: Final = {
    f"{CLUSTER}issuer": "create",
    f"{CLUSTER}issuerName": "hc1oidc",
    f"{CLUSTER}issuerURL": ABSENT,
    f"{CLUSTER}serviceAccountSigningKey": {},
}
CASES: Final = (
    ValueCase(
        ("backend",),
        "state-backend",
        bad=("stdev", "azblob://", "/srv/states", "azblob://a b", "azblob://c?storage_account=a&sig=x", "https://me@x"),
        good=("azblob://c?storage_account=stdev", "s3://bucket", "file:///srv/states", "https://api.pulumi.com"),
    ),
    ValueCase(
        ("policyWaivers__0__policy",),
        "choice",
        bad=("vault", "Certificate-Life"),
        good=("image-by-tag",),
        also={"policyWaivers": [_WAIVER]},
    ),
    ValueCase(
        ("policyWaivers__0__resource",),
        "resource-label",
        bad=("", "two words", "x" * 256),
        good=("vault-vault",),
        also={"policyWaivers": [_WAIVER]},
    ),
    ValueCase(
        ("policyWaivers__0__reason",),
        "reason",
        bad=("", "because", "x" * 19, " " * 40),
        good=("accepted by the owner until March",),
        also={"policyWaivers": [_WAIVER]},
    ),
    ValueCase(
        ("cloud",),
        "cloud",
        bad=("AzureGermanCloud", "AzureStackCloud", "azurepubliccloud", "local"),
        good=("AzurePublicCloud",),
    ),
    _uuid("tenant-id", "tenantId"),
    _uuid("subscription-id", "subscriptionId", hostedClusters=[]),
    _uuid("client-id", "keyVaultUser__clientId", **_KEY_VAULT_USER),
    _uuid("role-definition", "hostedClusters__0__identities__ingress__customRole"),
    _uuid("object-id", "keyVaultUser__objectId", **_KEY_VAULT_USER),
    ValueCase(
        ("location", f"{CLUSTER}location"),
        "location",
        bad=("East US", "west-us-2", "x", "éast", "true", True, 2024),
        good=("westeurope", "usgovvirginia"),
    ),
    ValueCase(
        ("resourceGroup", f"{CLUSTER}dnsZoneResourceGroup", f"{CLUSTER}kms__keyVaultResourceGroup"),
        "resource-group",
        bad=("rg.", "a/b", "a b", "x" * 91),
        good=("g", "x" * 90, "a.b_(c)-"),
    ),
    ValueCase(
        ("tags__team",),
        "tag-value",
        bad=(1, "x" * 257, "\x1b]0;title\x07", "\x00", "\x9b31m"),
        good=("", "x" * 256, "zwei\nZeilen"),
    ),
    ValueCase(("clusterSide",), "choice", bad=("hypershft", "none"), good=("stack", "hypershift")),
    ValueCase(("roles",), "choice", bad=("built-in", "BuiltIn", "contributor"), good=("builtin",)),
    ValueCase(
        ("sharedStack",),
        "stack-name",
        bad=("shared-dev", "idstack/shared-dev", "a/b/c/d", "organization/idstack/shared dev"),
        good=("organization/idstack/shared-dev",),
        also={"vault": {}},
    ),
    ValueCase(
        ("vault__name", f"{CLUSTER}kms__activeKey__keyVaultName"),
        "vault-name",
        bad=("kv_dev", "kv.dev", *("ab", "1kv", "kv--dev", "kv-dev-", "-kv", "x" * 25)),
        good=("abc", "x" * 24, "Kv-1"),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyName": "etcd", "keyVersion": KEY_VERSION}},
    ),
    ValueCase(("vault__softDeleteRetentionDays",), "integer", bad=(6, 91, "30", 7.5, True), good=(7, 90)),
    ValueCase(
        ("vault__purgeProtection", "vault__publicNetworkAccess", f"{CLUSTER}identities__imageRegistry__enabled"),
        "boolean",
        bad=("true", 1, "no"),
        good=(True, False),
    ),
    ValueCase(("vault__defaultAction",), "choice", bad=("allow", "DENY", "Block"), good=("Allow",)),
    ValueCase(
        ("vault__allowedIpRanges",),
        "ip-range",
        bad=(
            *("10.1.0.0/16", "172.16.0.1", "192.168.1.0/24", "0.0.0.0/0"),
            "203.0.113.7/24",
            "2001:db8::/32",
            "300.1.1.1",
            "203.0.113.0/33",
        ),
        good=("203.0.113.7", "203.0.113.0/24", "172.32.0.0/16"),
        also={"vault": {"name": "kv-identity", "defaultAction": "Deny"}},
        in_list=True,
    ),
    ValueCase(("keyVaultUser__source",), "choice", bad=("aksaddon", "aks"), good=("aks-addon",)),
    ValueCase(
        ("keyVaultUser__name",),
        "managed-identity-name",
        bad=("a b c", "ab", "_ab", "x" * 129),
        good=("a_b", "x" * 128),
        also={"keyVaultUser": {"source": "created", "name": "kv-user"}},
    ),
    ValueCase(
        ("managementCluster__name",), "managed-cluster-name", bad=("aks.mgmt", "-aks", "x" * 64), good=("a", "x" * 63)
    ),
    ValueCase(
        ("managementCluster__create__kubernetesVersion",),
        "kubernetes-version",
        bad=("v1.34", "latest", "1.34.x", "2.0"),
        good=("1.34", "1.34.1"),
        also=_CREATED,
    ),
    ValueCase(
        ("managementCluster__create__nodePool__count",),
        "integer",
        bad=(0, 1001, "3"),
        good=(1, 1000),
        also={"managementCluster": creation(nodePool={"vmSize": "Standard_D4s_v5", "maxPods": 30})},
    ),
    ValueCase(
        ("managementCluster__create__nodePool__zones",),
        "integer",
        bad=(0, 4, "1"),
        good=(1, 3),
        also=_CREATED,
        in_list=True,
    ),
    ValueCase(
        ("managementCluster__create__nodePool__maxPods",), "integer", bad=(9, 251, "30"), good=(10, 250), also=_CREATED
    ),
    ValueCase(
        ("managementCluster__create__nodePool__vmSize",),
        "vm-size",
        bad=("D4s_v5", "Standard D4", 4),
        good=("Standard_D4s_v5", "Standard_NC4as_T4_v3", "Standard_M8-2ms"),
        also=_CREATED,
    ),
    ValueCase(
        ("managementCluster__create__rotationPollInterval",),
        "poll-interval",
        bad=(*("often", "2", 2, "2 m", "30s1m", "1.5m"), *("2h", "61m", "1h1s"), *("0s", "29s", "0m")),
        good=("30s", "2m", "1m30s", "1h", "60m", "0h2m"),
        also=_CREATED,
    ),
    ValueCase(
        ("managementCluster__create__adminGroupObjectIDs",),
        "group-id",
        bad=("aks-admins", ZEROS, f"{{{OTHER}}}"),
        good=(OTHER,),
        also={"managementCluster": creation(azureRBAC=False)},
        in_list=True,
    ),
    ValueCase(
        ("managementCluster__access__login",),
        "login",
        bad=("device-code", "Azure-CLI", "password", 1),
        good=("azure-cli",),
        also=_UNNAMED_KUBECONFIG,
    ),
    ValueCase(("managementCluster__kubeconfig",), "file-path", bad=("", " ", "a\nb", 1), good=("of mine.yaml",)),
    ValueCase(("managementCluster__context",), "non-empty", bad=(" ", 1), good=("admin",)),
    ValueCase(("credentials__lifetimeDays",), "integer", bad=(1, 731, "90"), good=(46, 90)),
    ValueCase(("credentials__renewBeforeDays",), "integer", bad=(0, 730, "soon"), good=(30, 89)),
    ValueCase(("credentials__keySize",), "key-size", bad=(1024, "2048", 8192), good=(2048, 3072, 4096)),
    ValueCase(("credentials__renewal",), "choice", bad=("never", "holds"), good=("auto", "hold")),
    ValueCase(("credentials__propagation__successes",), "integer", bad=(0, 101, "5"), good=(1, 100)),
    ValueCase(("credentials__propagation__settleSeconds",), "integer", bad=(-1, 3601), good=(0, 599)),
    ValueCase(("credentials__propagation__timeoutSeconds",), "integer", bad=(0, 10_000), good=(31, 3600)),
    ValueCase(
        ("probe__image",),
        "image",
        bad=("Two Words", "registry.example.com/Upper", "probe@sha256:12", "probe:"),
        good=("probe", "registry:5000/a/b:1.0", f"probe@sha256:{'0' * 64}"),
    ),
    ValueCase(
        (f"{CLUSTER}resourceGroup",), "managed-resource-group", bad=("x", "rg.", "a/b", "x" * 91), good=("rg", "x" * 90)
    ),
    ValueCase(
        (f"{CLUSTER}name",),
        "cluster-name",
        bad=("HC1", "a_b", "-hc", "a..b", "x" * 55, 1),
        good=("a", "x" * 54, "a.b-c"),
        also={f"{CLUSTER}infraID": "infra", f"{CLUSTER}namespace": "n"},
    ),
    ValueCase((f"{CLUSTER}namespace",), "namespace", bad=("My", "a.b", "a-", "x" * 64), good=("n",)),
    ValueCase((f"{CLUSTER}infraID",), "infra-id", bad=("Infra", "a.b", "-a", "x" * 254), good=("x" * 253,)),
    ValueCase(
        (f"{CLUSTER}issuerURL",),
        "issuer-url",
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
    ValueCase((f"{CLUSTER}authentication",), "choice", bad=("workload-identity", "ManagedIdentities", "", 1), good=()),
    ValueCase((f"{CLUSTER}infrastructure",), "choice", bad=("created", "Existing", 1), good=("existing",)),
    ValueCase(
        (f"{CLUSTER}network__addressPrefix", f"{CLUSTER}network__subnetAddressPrefix"),
        "address-prefix",
        bad=("10.0.0.1/16", "10.0.0.0", "10.0.0.0/7", "10.0.0.0/30", "20.0.0.0/16", "169.254.0.0/16", "fd00::/64", 10),
        good=("10.0.0.0/16",),
        also={
            **{f"{CLUSTER}{key}": ABSENT for key in ("resourceGroup", "vnetID", "subnetID", "securityGroupID")},
            f"{CLUSTER}infrastructure": "create",
            f"{CLUSTER}network": {},
            f"{CLUSTER}dns": {"baseDomain": "example.com", "publicZoneID": f"{DNS}/dnszones/example.com"},
        },
    ),
    ValueCase((f"{CLUSTER}issuer",), "choice", bad=("created", "Create", ""), good=("existing",)),
    ValueCase(
        (f"{CLUSTER}issuerName",),
        "issuer-name",
        bad=("ab", "x" * 25, "Hc1Oidc", "hc1-oidc"),
        good=("abc", "x" * 24),
        also={f"{CLUSTER}issuer": "create", f"{CLUSTER}issuerURL": ABSENT},
    ),
    ValueCase(
        (f"{CLUSTER}serviceAccountSigningKey__published",),
        "published-keys",
        bad=([], [2, 1], [1, 1], [1, 2, 3, 4]),
        good=([1], [1, 2], [1, 2, 7]),
        also=_CREATED_ISSUER,
    ),
    ValueCase(
        (f"{CLUSTER}serviceAccountSigningKey__leaked",),
        "leaked-keys",
        bad=([2, 1], [3, 3]),
        good=([], [2], [2, 3, 4, 7]),
        also=_CREATED_ISSUER,
    ),
    ValueCase(
        (f"{CLUSTER}serviceAccountSigningKey__signing",),
        "integer",
        bad=(0, "1", 1.5, 10000),
        good=(1,),
        also=_CREATED_ISSUER,
    ),
    ValueCase(
        (f"{CLUSTER}serviceAccountSigningKey__vaultSecretName",),
        "secret-name",
        bad=("a.b", "a_b", "x" * 128),
        good=("s", "x" * 127),
        also={f"{CLUSTER}serviceAccountSigningKey": {}},
    ),
    ValueCase(
        (f"{CLUSTER}serviceAccountSigningKey__file", f"{CLUSTER}identities__imageRegistry__credential__file"),
        "document-path",
        bad=("", "x" * 501, "-----BEGIN", '{"client_secret": "x"}', "a\nb"),
        good=("/run/keys/sa.pem",),
        also={
            f"{CLUSTER}serviceAccountSigningKey": {"file": "sa.pem"},
            f"{CLUSTER}identities__imageRegistry": {
                "source": "managed-identity",
                "resourceId": MANAGED_IDENTITY,
                "credential": {"file": "x"},
            },
        },
    ),
    ValueCase(
        (f"{CLUSTER}dns__baseDomain", f"{CLUSTER}externalDnsDomain"),
        "domain-name",
        bad=("example", "Example.com", "a_b.example.com", "-a.example.com", "example.c0m", "example.com.", "a..com"),
        good=("xn--bcher-kva.example",),
    ),
    ValueCase(
        (f"{CLUSTER}hostedCluster__serviceAccountSigningKey",),
        "kubernetes-secret-name",
        bad=("Key", "a_b", "-a", "a..b", "x" * 254),
        good=("a", "x" * 253, "a.b-c"),
        also={"clusterSide": "hypershift", f"{CLUSTER}hostedCluster": {"file": "hc1.yaml"}},
    ),
    ValueCase(
        (f"{CLUSTER}objectEncoding", f"{CLUSTER}identities__ingress__objectEncoding"),
        "choice",
        bad=("utf8", "UTF-8", "Base64", "ascii"),
        good=("utf-8", "base64", "hex"),
    ),
    ValueCase(
        (f"{CLUSTER}kms__activeKey__keyName",),
        "key-name",
        bad=("a_b", "x" * 128),
        good=("k", "x" * 127),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyVersion": KEY_VERSION}},
    ),
    ValueCase(
        (f"{CLUSTER}kms__activeKey__keyVersion",),
        "key-version",
        bad=("latest", "0" * 32),
        good=(KEY_VERSION.upper(),),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyName": "etcd"}},
    ),
    ValueCase(
        (f"{CLUSTER}kms__backupKey__keyName",),
        "key-name",
        bad=("a_b",),
        good=("k",),
        also={f"{CLUSTER}kms__backupKey": {"keyVaultName": "kv-etcd", "keyVersion": KEY_VERSION}},
    ),
    ValueCase((f"{CLUSTER}kms__backupKeyVaultResourceGroup",), "resource-group", bad=("rg.",), good=("rg",)),
    ValueCase((f"{CLUSTER}kms__keyVaultType",), "choice", bad=("managedHsm", "HSM"), good=("KeyVault",)),
    ValueCase((f"{CLUSTER}kms__keyVaultAccess",), "choice", bad=("private", "", "Swift"), good=("Public", "Private")),
    ValueCase((f"{CLUSTER}topology",), "choice", bad=("public", "PrivateAndPublic"), good=("Public",)),
    ValueCase(
        (f"{CLUSTER}private__type",),
        "choice",
        bad=("PrivateLinkService", "swift"),
        good=("Swift",),
        also={f"{CLUSTER}topology": "Private", f"{CLUSTER}private__swift": {"podNetworkInstance": "pni"}},
    ),
    ValueCase(
        (f"{CLUSTER}private__swift__podNetworkInstance",),
        "pod-network-instance",
        bad=("Pni", "a.b", "x" * 64),
        good=("x" * 63,),
        also={f"{CLUSTER}topology": "PublicAndPrivate", f"{CLUSTER}private__type": "Swift"},
    ),
    ValueCase(
        (f"{CLUSTER}private__privateLink__additionalAllowedSubscriptions",),
        "subscription-id",
        bad=("mine",),
        good=(OTHER,),
        also={f"{CLUSTER}topology": "Private", f"{CLUSTER}private__type": "PrivateLink"},
        in_list=True,
    ),
    ValueCase(
        (f"{CLUSTER}identities__ingress__secretName",),
        "secret-name",
        bad=("a.b", "a_b", "x" * 128),
        good=("s", "x" * 127),
    ),
    ValueCase(
        (f"{CLUSTER}identities__ingress__source",),
        "choice",
        bad=("managedIdentity", "vault"),
        good=("entra-application",),
    ),
    ValueCase(("allowCredentialLoss",), "cluster-name", bad=("HC1", "*"), good=("hc1", "gone"), in_list=True),
)
