"""Configurations of a stack that differ in what the program registers: changes of `world.configuration`."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.components import world
from tests.unit.components.world import GROUPS, hosted_cluster

_ACCOUNT = f"{GROUPS}/backup-dev/providers/Microsoft.Storage/storageAccounts/backupsdev"
_REGISTRY = f"{GROUPS}/images-dev/providers/Microsoft.ContainerRegistry/registries/imagesdev"
_ZONE = f"{GROUPS}/dns-dev/providers/Microsoft.Network/dnszones/example.com"
_KEY = "https://{}.{}.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef"
_MANIFEST = {"manifest": {"spec": {"serviceAccountSigningKey": {"name": "signing-key"}}}}
_EVERYTHING = {
    "identities": {"etcdBackup": {"enabled": True}},
    "backupStorageAccountID": _ACCOUNT,
    "managedIdentities": ["acrPull", "externalDNS", "velero"],
    "containerRegistryID": _REGISTRY,
    "externalDnsZoneID": _ZONE,
    "managementIssuerURL": "https://oidc.example.com/aks",
}


def _without(*keys: str, **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in hosted_cluster(**changes).items() if key not in keys}


_INFRASTRUCTURE = _without(
    *("resourceGroup", "vnetID", "subnetID", "securityGroupID", "dnsZoneResourceGroup"),
    infrastructure="create",
    dns={"baseDomain": "example.com", "publicZoneID": _ZONE},
    hostedCluster=_MANIFEST,
)
_ISSUER = _without(
    "issuerURL",
    issuer="create",
    issuerName="hc1created",
    serviceAccountSigningKey={"published": [1, 2], "signing": 2},
    hostedCluster={"manifest": {"spec": {"release": {"image": "registry.example.com/release:1"}}}},
)
_WORKLOAD = {"name": "mine", "image": "registry.example.com/mine:1", "identities": ["disk", "kms"], "replicas": 3}
_BACKUP_KEY = {
    "activeKey": _KEY.format("kv-etcd-dev", "vault"),
    "backupKey": _KEY.format("kv-etcd-old", "vault"),
    "keyVaultResourceGroup": "etcd-dev",
}
_SAME_GROUP = {
    "vnetID": world.VNET.replace("hc1-network", "hc1-managed"),
    "subnetID": world.SUBNET.replace("hc1-network", "hc1-managed"),
}

WITHOUT_VAULT: Final[dict[str, Any]] = {
    "clusterSide": "hypershift",
    "vault": None,
    "managementCluster": None,
    "probe": None,
}
SELF_MANAGED: Final = {"authentication": "workload-identities", "topology": "Public"}
_LINK = {
    "authentication": "workload-identities",
    "topology": "Private",
    "private": {"type": "PrivateLink", "privateLink": {"natSubnetID": f"{world.VNET}/subnets/nat"}},
}

# Changes of the stack's configuration, by what is special about them.
CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "one cluster": {},
    "no cluster": {"hostedClusters": []},
    "two clusters": {"hostedClusters": [hosted_cluster(), world.SECOND_CLUSTER], "clusterSide": "hypershift"},
    "production's roles": {"roles": "builtin"},
    "scopes that coincide": {"hostedClusters": [hosted_cluster(**_SAME_GROUP)]},
    "optional identities": {"hostedClusters": [hosted_cluster(**_EVERYTHING)]},
    "an identity off": {"hostedClusters": [hosted_cluster(identities={"imageRegistry": {"enabled": False}})]},
    "a credential from elsewhere": {"hostedClusters": world.with_managed_identity({"secretName": "given"})},
    "no encryption of etcd": {"hostedClusters": [_without("kms")]},
    "two encryption keys": {"hostedClusters": [hosted_cluster(kms=_BACKUP_KEY)]},
    "a managed HSM": {"hostedClusters": [hosted_cluster(kms={"activeKey": _KEY.format("hsm-dev", "managedhsm")})]},
    "an issuer": {"hostedClusters": [_ISSUER], "clusterSide": "hypershift"},
    "infrastructure": {"hostedClusters": [_INFRASTRUCTURE], "clusterSide": "hypershift"},
    "workload identities": {"hostedClusters": [hosted_cluster(**SELF_MANAGED)], **WITHOUT_VAULT},
    "workload identities and an issuer": {"hostedClusters": [{**_ISSUER, **_LINK}], "clusterSide": "hypershift"},
    "both ways": {
        "hostedClusters": [hosted_cluster(), {**world.SECOND_CLUSTER, **SELF_MANAGED}],
        "clusterSide": "hypershift",
        "roles": "builtin",
    },
    "a workload": {"hostedClusters": [hosted_cluster(workloads=[_WORKLOAD])]},
    "a reader of single secrets": {"keyVaultUserScope": "secrets"},
    "a reader of its own": {"keyVaultUser": {"source": "created", "name": "kv-reader"}},
}

_VAULT = {
    "name": "kv-idstack-dev",
    "softDeleteRetentionDays": 7,
    "purgeProtection": False,
    "publicNetworkAccess": False,
    "defaultAction": "Allow",
}
_LISTS = {"name": "kv-idstack-dev", "allowedIpRanges": ["20.0.0.0/24"], "allowedSubnetIds": [world.SUBNET]}


def _made(pool: dict[str, Any], **creation: Any) -> dict[str, Any]:
    create = {"nodePool": {"vmSize": "Standard_D4s_v5", "count": 2, **pool}, **creation}
    return {"managementCluster": {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "create": create}}


# Changes of what Azure alone has, without a hosted cluster: each key is there in one of them, and so is each word and
# each value of a boolean.
_AZURE: Final[dict[str, dict[str, Any]]] = {
    "an open vault": {"vault": _VAULT},
    "a vault with lists": {"vault": {**_LISTS, "purgeProtection": True, "publicNetworkAccess": True}},
    "a denying vault": {"vault": {**_LISTS, "defaultAction": "Deny"}, "tags": None},
    "a reader that exists": {"keyVaultUser": {"source": "existing", **world.ADD_ON}},
    "a reader of the add-on's": {"keyVaultUser": {"source": "aks-addon"}, "keyVaultUserScope": "vault"},
    "a cluster with groups": _made(
        {"zones": [1], "maxPods": 60, "osSKU": "AzureLinux", "fips": True},
        adminGroupObjectIDs=[world.DEPLOYER],
        azureRBAC=False,
        kubernetesVersion="1.34",
        network={"plugin": "azure", "policy": "azure"},
    ),
    "a cluster with roles": _made(
        {"osSKU": "Ubuntu", "fips": False},
        azureRBAC=True,
        rotationPollInterval="1h",
        network={"plugin": "kubenet", "policy": "calico"},
    ),
    "a cluster without policies": _made({}, azureRBAC=True, network={"policy": "none"}),
}
AZURE: Final = {name: {"hostedClusters": [], **changes} for name, changes in _AZURE.items()}
