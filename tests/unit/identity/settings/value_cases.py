"""Single values on the level of the stack: by type, what its rule refuses and what it accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.unit.identity.settings.world import KEY_VERSION, OTHER, creation

ZEROS: Final = "00000000-0000-0000-0000-000000000000"
CLUSTER: Final = "hostedClusters__0__"


@dataclass(frozen=True, kw_only=True)
class ValueCase:
    """One type of value: where it stands, values that break its rule, and good ones. `also` is set besides."""

    paths: tuple[str, ...]
    rule: str
    bad: tuple[Any, ...]
    good: tuple[Any, ...] = ()
    also: Mapping[str, Any] = field(default_factory=dict)
    in_list: bool = False


def _uuid(rule: str, path: str, **also: Any) -> ValueCase:
    return ValueCase(
        paths=(path,),
        rule=rule,
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
STACK_CASES: Final[Mapping[str, ValueCase]] = {
    "backend": ValueCase(
        paths=("backend",),
        rule="state-backend",
        bad=("stdev", "azblob://", "/srv/states", "azblob://a b", "azblob://c?storage_account=a&sig=x", "https://me@x"),
        good=("azblob://c?storage_account=stdev", "s3://bucket", "file:///srv/states", "https://api.pulumi.com"),
    ),
    "waived policy": ValueCase(
        paths=("policyWaivers__0__policy",),
        rule="choice",
        bad=("vault", "Certificate-Life"),
        good=("image-by-tag",),
        also={"policyWaivers": [_WAIVER]},
    ),
    "waived resource": ValueCase(
        paths=("policyWaivers__0__resource",),
        rule="resource-label",
        bad=("", "two words", "x" * 256),
        good=("vault-vault",),
        also={"policyWaivers": [_WAIVER]},
    ),
    "reason of a waiver": ValueCase(
        paths=("policyWaivers__0__reason",),
        rule="reason",
        bad=("", "because", "x" * 19, " " * 40),
        good=("accepted by the owner until March",),
        also={"policyWaivers": [_WAIVER]},
    ),
    "cloud": ValueCase(
        paths=("cloud",),
        rule="cloud",
        bad=("AzureGermanCloud", "AzureStackCloud", "azurepubliccloud", "local"),
        good=("AzurePublicCloud",),
    ),
    "tenant": _uuid("tenant-id", "tenantId"),
    "subscription": _uuid("subscription-id", "subscriptionId", hostedClusters=[]),
    "client": _uuid("client-id", "keyVaultUser__clientId", **_KEY_VAULT_USER),
    "role definition": _uuid("role-definition", "hostedClusters__0__identities__ingress__customRole"),
    "object": _uuid("object-id", "keyVaultUser__objectId", **_KEY_VAULT_USER),
    "location": ValueCase(
        paths=("location", f"{CLUSTER}location"),
        rule="location",
        bad=("East US", "west-us-2", "x", "éast", "true", True, 2024),
        good=("westeurope", "usgovvirginia"),
    ),
    "resource group": ValueCase(
        paths=("resourceGroup", f"{CLUSTER}dnsZoneResourceGroup", f"{CLUSTER}kms__keyVaultResourceGroup"),
        rule="resource-group",
        bad=("rg.", "a/b", "a b", "x" * 91),
        good=("g", "x" * 90, "a.b_(c)-"),
    ),
    "tag": ValueCase(
        paths=("tags__team",),
        rule="tag-value",
        bad=(1, "x" * 257, "\x1b]0;title\x07", "\x00", "\x9b31m"),
        good=("", "x" * 256, "zwei\nZeilen"),
    ),
    "side": ValueCase(
        paths=("clusterSide",),
        rule="choice",
        bad=("hypershft", "none"),
        good=("stack", "hypershift"),
    ),
    "roles": ValueCase(
        paths=("roles",),
        rule="choice",
        bad=("built-in", "BuiltIn", "contributor"),
        good=("builtin",),
    ),
    "stack": ValueCase(
        paths=("sharedStack",),
        rule="stack-name",
        bad=("shared-dev", "idstack/shared-dev", "a/b/c/d", "organization/idstack/shared dev"),
        good=("organization/idstack/shared-dev",),
        also={"vault": {}},
    ),
    "vault": ValueCase(
        paths=("vault__name", f"{CLUSTER}kms__activeKey__keyVaultName"),
        rule="vault-name",
        bad=("kv_dev", "kv.dev", *("ab", "1kv", "kv--dev", "kv-dev-", "-kv", "x" * 25)),
        good=("abc", "x" * 24, "Kv-1"),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyName": "etcd", "keyVersion": KEY_VERSION}},
    ),
    "retention": ValueCase(
        paths=("vault__softDeleteRetentionDays",),
        rule="integer",
        bad=(6, 91, "30", 7.5, True),
        good=(7, 90),
    ),
    "boolean": ValueCase(
        paths=("vault__purgeProtection", "vault__publicNetworkAccess", f"{CLUSTER}identities__imageRegistry__enabled"),
        rule="boolean",
        bad=("true", 1, "no"),
        good=(True, False),
    ),
    "action": ValueCase(
        paths=("vault__defaultAction",),
        rule="choice",
        bad=("allow", "DENY", "Block"),
        good=("Allow",),
    ),
    "range": ValueCase(
        paths=("vault__allowedIpRanges",),
        rule="ip-range",
        bad=(
            *("10.1.0.0/16", "172.16.0.1", "192.168.1.0/24", "0.0.0.0/0"),
            "203.0.113.7/24",
            "2001:db8::/32",
            "300.1.1.1",
            "203.0.113.0/33",
        ),
        good=("203.0.113.7", "203.0.113.0/24", "172.32.0.0/16"),
        in_list=True,
        also={"vault": {"name": "kv-identity", "defaultAction": "Deny"}},
    ),
    "key-vault-user": ValueCase(
        paths=("keyVaultUser__source",),
        rule="choice",
        bad=("aksaddon", "aks"),
        good=("aks-addon",),
    ),
    "managed identity": ValueCase(
        paths=("keyVaultUser__name",),
        rule="managed-identity-name",
        bad=("a b c", "ab", "_ab", "x" * 129),
        good=("a_b", "x" * 128),
        also={"keyVaultUser": {"source": "created", "name": "kv-user"}},
    ),
    "AKS cluster": ValueCase(
        paths=("managementCluster__name",),
        rule="managed-cluster-name",
        bad=("aks.mgmt", "-aks", "x" * 64),
        good=("a", "x" * 63),
    ),
    "Kubernetes version": ValueCase(
        paths=("managementCluster__create__kubernetesVersion",),
        rule="kubernetes-version",
        bad=("v1.34", "latest", "1.34.x", "2.0"),
        good=("1.34", "1.34.1"),
        also=_CREATED,
    ),
    "machines": ValueCase(
        paths=("managementCluster__create__nodePool__count",),
        rule="integer",
        bad=(0, 1001, "3"),
        good=(1, 1000),
        also={"managementCluster": creation(nodePool={"vmSize": "Standard_D4s_v5", "maxPods": 30})},
    ),
    "availability zone": ValueCase(
        paths=("managementCluster__create__nodePool__zones",),
        rule="integer",
        bad=(0, 4, "1"),
        good=(1, 3),
        also=_CREATED,
        in_list=True,
    ),
    "pods of a machine": ValueCase(
        paths=("managementCluster__create__nodePool__maxPods",),
        rule="integer",
        bad=(9, 251, "30"),
        good=(10, 250),
        also=_CREATED,
    ),
    "machine size": ValueCase(
        paths=("managementCluster__create__nodePool__vmSize",),
        rule="vm-size",
        bad=("D4s_v5", "Standard D4", 4),
        good=("Standard_D4s_v5", "Standard_NC4as_T4_v3", "Standard_M8-2ms"),
        also=_CREATED,
    ),
    "poll interval": ValueCase(
        paths=("managementCluster__create__rotationPollInterval",),
        rule="poll-interval",
        bad=(*("often", "2", 2, "2 m", "30s1m", "1.5m"), *("2h", "61m", "1h1s"), *("0s", "29s", "0m")),
        good=("30s", "2m", "1m30s", "1h", "60m", "0h2m"),
        also=_CREATED,
    ),
    "administrators": ValueCase(
        paths=("managementCluster__create__adminGroupObjectIDs",),
        rule="group-id",
        bad=("aks-admins", ZEROS, f"{{{OTHER}}}"),
        good=(OTHER,),
        also={"managementCluster": creation(azureRBAC=False)},
        in_list=True,
    ),
    "login": ValueCase(
        paths=("managementCluster__access__login",),
        rule="login",
        bad=("device-code", "Azure-CLI", "password", 1),
        good=("azure-cli",),
        also=_UNNAMED_KUBECONFIG,
    ),
    "kubeconfig": ValueCase(
        paths=("managementCluster__kubeconfig",),
        rule="file-path",
        bad=("", " ", "a\nb", 1),
        good=("of mine.yaml",),
    ),
    "context": ValueCase(
        paths=("managementCluster__context",),
        rule="non-empty",
        bad=(" ", 1),
        good=("admin",),
    ),
    "lifetime": ValueCase(
        paths=("credentials__lifetimeDays",),
        rule="integer",
        bad=(1, 731, "90"),
        good=(46, 90),
    ),
    "key size": ValueCase(
        paths=("credentials__keySize",),
        rule="key-size",
        bad=(1024, "2048", 8192),
        good=(2048, 3072, 4096),
    ),
    "renewal": ValueCase(
        paths=("credentials__renewal",),
        rule="choice",
        bad=("never", "holds"),
        good=("auto", "hold"),
    ),
    "successes": ValueCase(
        paths=("credentials__propagation__successes",),
        rule="integer",
        bad=(0, 101, "5"),
        good=(1, 100),
    ),
    "settle": ValueCase(
        paths=("credentials__propagation__settleSeconds",),
        rule="integer",
        bad=(-1, 3601),
        good=(0, 599),
    ),
    "image": ValueCase(
        paths=("probe__image",),
        rule="image",
        bad=("Two Words", "registry.example.com/Upper", "probe@sha256:12", "probe:"),
        good=("probe", "registry:5000/a/b:1.0", f"probe@sha256:{'0' * 64}"),
    ),
}
