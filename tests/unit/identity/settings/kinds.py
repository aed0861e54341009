"""The forms of single values on the level of the stack: what is accepted, what is refused and how to fix it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.unit.identity.settings.world import KEY_VERSION, OTHER, creation

ZEROS: Final = "00000000-0000-0000-0000-000000000000"
PLACEHOLDER: Final = "the placeholder of the example, still to be filled in"
CLUSTER: Final = "hostedClusters__0__"
PRIVATE: Final = "a private network, which Key Vault refuses: allow its subnet in allowedSubnetIds"
DAYS: Final = "an integer, {} days, without quotes"
SECONDS: Final = "an integer, {} seconds, without quotes"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One form of value and where it stands.

    `bad` has for each value what the fixing command offers: a guess at what was meant, or `blank`; with the reason
    that follows the value in the report, where there is one. `hint` follows the command unless there is a guess.
    """

    paths: tuple[str, ...]
    accepted: str
    blank: str
    bad: Mapping[Any, str | tuple[str, str]]
    good: tuple[Any, ...] = ()
    hint: str = ""
    also: Mapping[str, Any] = field(default_factory=dict)
    in_list: bool = False


def _uuid(path: str, whose: str, query: str, **also: Any) -> Kind:
    blank = "<uuid>"
    return Kind(
        paths=(path,),
        accepted=f"the UUID of {whose}, 8-4-4-4-12 hexadecimal digits",
        blank=blank,
        hint=f"`az {query}` prints it",
        bad={
            "somewhere": blank,
            "contoso.onmicrosoft.com": blank,
            f"{OTHER[:-1]}": blank,
            OTHER.replace("3", "g"): blank,
            f"{{{OTHER}}}": OTHER,
            ZEROS: (blank, PLACEHOLDER),
        },
        also=also,
    )


_READER = {"keyVaultUser": {"source": "existing", "clientId": OTHER, "objectId": OTHER}}
_CREATED = {"managementCluster": creation()}
STACK_KINDS: Final[Mapping[str, Kind]] = {
    "cloud": Kind(
        paths=("cloud",),
        accepted="AzurePublicCloud, AzureUSGovernmentCloud, AzureChinaCloud or local",
        blank="AzurePublicCloud",
        bad={
            "AzureGermanCloud": "AzurePublicCloud",
            "AzureStackCloud": "AzurePublicCloud",
            "azurepubliccloud": "AzurePublicCloud",
            "local": (
                "AzurePublicCloud",
                "only stacks named local or local-<word> have the local cloud, once `make up` has started it",
            ),
        },
        good=("AzurePublicCloud",),
    ),
    "tenant": _uuid("tenantId", "the Entra ID tenant", "account show --query tenantId"),
    "subscription": _uuid("subscriptionId", "the subscription", "account show --query id", hostedClusters=[]),
    "client": _uuid("keyVaultUser__clientId", "the identity (client id)", "identity show --query clientId", **_READER),
    "object": _uuid(
        "keyVaultUser__objectId", "the principal (object id)", "identity show --query principalId", **_READER
    ),
    "location": Kind(
        paths=("location", f"{CLUSTER}location"),
        accepted="the short name of an Azure region, lower-case letters and digits, such as eastus",
        blank="<region>",
        hint="`az account list-locations --query [].name` lists them",
        bad={"East US": "eastus", "west-us-2": "westus2", "x": "<region>", "éast": "<region>"},
        good=("westeurope", "usgovvirginia"),
    ),
    "resource group": Kind(
        paths=("resourceGroup", f"{CLUSTER}dnsZoneResourceGroup", f"{CLUSTER}kms__keyVaultResourceGroup"),
        accepted='the name of a resource group: 1-90 letters, digits, "_", "-", "(", ")" and ".", not ending with "."',
        blank="<resource-group>",
        bad=dict.fromkeys(("rg.", "a/b", "a b", "x" * 91), "<resource-group>"),
        good=("g", "x" * 90, "a.b_(c)-"),
    ),
    "tag": Kind(
        paths=("tags__team",),
        accepted="a string of at most 256 characters",
        blank="<value>",
        bad={1: "<value>", "x" * 257: "<value>"},
        good=("", "x" * 256, "zwei\nZeilen"),
    ),
    "side": Kind(
        paths=("clusterSide",),
        accepted="stack or hypershift",
        blank="<stack|hypershift>",
        bad={"hypershft": "hypershift", "none": "<stack|hypershift>"},
        good=("stack", "hypershift"),
    ),
    "roles": Kind(
        paths=("roles",),
        accepted="hypershift or builtin",
        blank="<hypershift|builtin>",
        bad={"built-in": "builtin", "BuiltIn": "builtin", "contributor": "<hypershift|builtin>"},
        good=("builtin",),
    ),
    "stack": Kind(
        paths=("sharedStack",),
        accepted="the full name of a stack, such as organization/idstack/shared-dev",
        blank="<organization>/idstack/<stack>",
        hint='outside of Pulumi Cloud the organization is the word "organization"',
        bad={
            "shared-dev": "organization/idstack/shared-dev",
            "idstack/shared-dev": "<organization>/idstack/<stack>",
            "a/b/c/d": "<organization>/idstack/<stack>",
            "organization/idstack/shared dev": "<organization>/idstack/<stack>",
        },
        good=("organization/idstack/shared-dev",),
        also={"vault": {}},
    ),
    "vault": Kind(
        paths=("vault__name", f"{CLUSTER}kms__activeKey__keyVaultName"),
        accepted="the name of a key vault: 3-24 letters, digits and single hyphens, from a letter to a letter or digit",
        blank="<vault>",
        bad={
            "kv_dev": "kv-dev",
            "kv.dev": "kv-dev",
            **dict.fromkeys(("ab", "1kv", "kv--dev", "kv-dev-", "-kv", "x" * 25), "<vault>"),
        },
        good=("abc", "x" * 24, "Kv-1"),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyName": "etcd", "keyVersion": KEY_VERSION}},
    ),
    "retention": Kind(
        paths=("vault__softDeleteRetentionDays",),
        accepted=DAYS.format("7 to 90"),
        blank="<7-90>",
        bad=dict.fromkeys((6, 91, "30", 7.5, True), "<7-90>"),
        good=(7, 90),
    ),
    "truth": Kind(
        paths=("vault__purgeProtection", "vault__publicNetworkAccess", f"{CLUSTER}identities__imageRegistry__enabled"),
        accepted="true or false",
        blank="<true|false>",
        bad=dict.fromkeys(("true", 1, "no"), "<true|false>"),
        good=(True, False),
    ),
    "action": Kind(
        paths=("vault__defaultAction",),
        accepted="Allow or Deny",
        blank="<Allow|Deny>",
        bad={"allow": "Allow", "DENY": "Deny", "Block": "<Allow|Deny>"},
        good=("Allow", "Deny"),
    ),
    "range": Kind(
        paths=("vault__allowedIpRanges",),
        accepted="a public IPv4 address or range, such as 203.0.113.7 or 203.0.113.0/24",
        blank="<range>",
        bad={
            **dict.fromkeys(("10.1.0.0/16", "172.16.0.1", "192.168.1.0/24", "0.0.0.0/0"), ("<range>", PRIVATE)),
            "203.0.113.7/24": ("203.0.113.0/24", "bits of the host are set"),
            "2001:db8::/32": "<range>",
            "300.1.1.1": "<range>",
            "203.0.113.0/33": "<range>",
        },
        good=("203.0.113.7", "203.0.113.0/24", "172.32.0.0/16"),
        in_list=True,
    ),
    "reader": Kind(
        paths=("keyVaultUser__source",),
        accepted="aks-addon, existing or created",
        blank="<aks-addon|existing|created>",
        bad={"aksaddon": "aks-addon", "aks": "<aks-addon|existing|created>"},
        good=("aks-addon",),
    ),
    "managed identity": Kind(
        paths=("keyVaultUser__name",),
        accepted='the name of a managed identity: 3-128 letters, digits, "-" and "_", starting with a letter or digit',
        blank="<name>",
        bad={"a b c": "a-b-c", "ab": "<name>", "_ab": "<name>", "x" * 129: "<name>"},
        good=("a_b", "x" * 128),
        also={"keyVaultUser": {"source": "created", "name": "reader"}},
    ),
    "AKS cluster": Kind(
        paths=("managementCluster__name",),
        accepted='the name of an AKS cluster: 1-63 letters, digits, "-" and "_", neither mark at an end',
        blank="<aks-cluster>",
        bad={"aks.mgmt": "aks-mgmt", "-aks": "<aks-cluster>", "x" * 64: "<aks-cluster>"},
        good=("a", "x" * 63),
    ),
    "Kubernetes version": Kind(
        paths=("managementCluster__create__kubernetesVersion",),
        accepted='a version of Kubernetes in quotes, such as "1.34" (its newest patch) or "1.34.1"',
        blank='"<version>"',
        hint="`az aks get-versions --location <region> --output table` lists them",
        bad={"v1.34": "1.34", "latest": '"<version>"', "1.34.x": '"<version>"', "2.0": '"<version>"'},
        good=("1.34", "1.34.1"),
        also=_CREATED,
    ),
    "machines": Kind(
        paths=("managementCluster__create__nodePool__count",),
        accepted="an integer, 1 to 1000 machines, without quotes",
        blank="<1-1000>",
        bad=dict.fromkeys((0, 1001, "3"), "<1-1000>"),
        good=(1, 1000),
        also=_CREATED,
    ),
    "machine size": Kind(
        paths=("managementCluster__create__nodePool__vmSize",),
        accepted="the size of a virtual machine, such as Standard_D4s_v5",
        blank="<size>",
        hint="`az vm list-skus --location <region> --resource-type virtualMachines --query [].name` lists them",
        bad={"D4s_v5": "Standard_D4s_v5", "Standard D4": "<size>", 4: "<size>"},
        good=("Standard_D4s_v5", "Standard_NC4as_T4_v3", "Standard_M8-2ms"),
        also=_CREATED,
    ),
    "poll interval": Kind(
        paths=("managementCluster__create__rotationPollInterval",),
        accepted="a time from 30s to 1h in hours, minutes and seconds, such as 2m or 1m30s",
        blank="2m",
        bad={
            **dict.fromkeys(("often", "2", 2, "2 m", "30s1m", "1.5m"), "2m"),
            **dict.fromkeys(
                ("2h", "61m", "1h1s"), ("2m", "a renewal counts on every pod's mount being new within the hour")
            ),
            **dict.fromkeys(
                ("0s", "29s", "0m"), ("2m", "each poll reads every mounted secret, and Key Vault limits how often")
            ),
        },
        good=("30s", "2m", "1m30s", "1h", "60m", "0h2m"),
        also=_CREATED,
    ),
    "administrators": Kind(
        paths=("managementCluster__create__adminGroupObjectIDs",),
        accepted="the UUID of the Entra ID group, 8-4-4-4-12 hexadecimal digits",
        blank="<uuid>",
        hint="`az ad group show --group <name> --query id` prints it",
        bad={"aks-admins": "<uuid>", ZEROS: ("<uuid>", PLACEHOLDER), f"{{{OTHER}}}": OTHER},
        good=(OTHER,),
        also={"managementCluster": creation(azureRBAC=False)},
        in_list=True,
    ),
    "context": Kind(
        paths=("managementCluster__context",),
        accepted="a string that is not empty",
        blank="<value>",
        bad={" ": "<value>", 1: "<value>"},
        good=("admin",),
    ),
    "lifetime": Kind(
        paths=("credentials__lifetimeDays",),
        accepted=DAYS.format("2 to 730"),
        blank="<2-730>",
        bad=dict.fromkeys((1, 731, "90"), "<2-730>"),
        good=(46, 90),
    ),
    "key size": Kind(
        paths=("credentials__keySize",),
        accepted="the bits of an RSA key: 2048, 3072 or 4096",
        blank="2048",
        bad={1024: "2048", "2048": "2048", 8192: "2048"},
        good=(2048, 3072, 4096),
    ),
    "renewal": Kind(
        paths=("credentials__renewal",),
        accepted="auto or hold",
        blank="<auto|hold>",
        bad={"never": "<auto|hold>", "holds": "hold"},
        good=("auto", "hold"),
    ),
    "successes": Kind(
        paths=("credentials__propagation__successes",),
        accepted="an integer, 1 to 100 sign-ins in a row, without quotes",
        blank="<1-100>",
        bad=dict.fromkeys((0, 101, "5"), "<1-100>"),
        good=(1, 100),
    ),
    "settle": Kind(
        paths=("credentials__propagation__settleSeconds",),
        accepted=SECONDS.format("0 to 3600"),
        blank="<0-3600>",
        bad=dict.fromkeys((-1, 3601), "<0-3600>"),
        good=(0, 599),
    ),
    "image": Kind(
        paths=("probe__image",),
        accepted="a container image such as registry.example.com/idstack/credential-probe:1.0 or ...@sha256:<digest>",
        blank="<image>",
        bad=dict.fromkeys(("Two Words", "registry.example.com/Upper", "probe@sha256:12", "probe:"), "<image>"),
        good=("probe", "registry:5000/a/b:1.0", f"probe@sha256:{'0' * 64}"),
    ),
}
