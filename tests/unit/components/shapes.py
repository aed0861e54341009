"""Configurations that together have every choice of every key on which an object of the management cluster can depend.

The choices come from the settings' own schema: each word, `true` and `false`, and each optional key once there and once
left out. `_BASES` has what a choice needs beside it; as many choices as fit together are put into one configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, get_args, get_origin

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.clouds import CLOUDS
from identity.settings import ConfigurationError
from identity.settings.schema.base import FilledIn
from identity.settings.schema.model import Settings
from identity.settings.schema.schema_node import SchemaNode
from localcloud.testing.hosted_clusters import ABSENT, changed
from tests.unit.components import world
from tests.unit.components.world import GROUPS, VNET, hosted_cluster

PRESENT: Final = object()
# What Azure alone has, how the stack gets into the management cluster, and what the run itself does.
_ELSEWHERE: Final = frozenset(
    {
        *("vault", "keyVaultUser", "keyVaultUserScope", "managementCluster", "sharedStack", "tags"),
        "backend",
        *("protect", "credentials", "allowCredentialLoss", "policyWaivers"),
    }
)
# A file has what the key beside it has, and its content is read from the disk.
_FILES: Final = (".file", ".credential")
# These decide roles in Azure alone.
_OF_ROLES: Final = (".customRole", ".routeTableID", ".natGatewayID")
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "identities": tuple(row.field for row in CONTROL_PLANE),
    "dataPlaneIdentities": tuple(row.field for row in DATA_PLANE),
}


@dataclass(frozen=True)
class Choice:
    """A value of a key, by its dotted path: a word, a boolean, `PRESENT` or `ABSENT`. `is_default`: if left out."""

    path: str
    value: Any
    is_default: bool = False

    def __str__(self) -> str:
        words = {id(PRESENT): "there", id(ABSENT): "left out"}
        return f"{self.path}: {words.get(id(self.value), self.value)}"

    def is_in(self, configuration: Mapping[str, Any]) -> bool:
        """Whether the configuration has it."""
        *above, key = self.path.split(".")
        place: Any = configuration
        for step in above:
            place = _step(place, step)
        found = _step(place, key)
        if place is ABSENT:
            return False
        if self.value is PRESENT:
            return found is not ABSENT
        return found == self.value or (found is ABSENT and self.is_default)


def choices() -> Iterator[Choice]:
    """Every choice, in the order of the keys."""
    yield from (Choice("cloud", name) for name in CLOUDS)
    yield from _choices(SchemaNode(Settings), "")


def _choices(node: SchemaNode, path: str) -> Iterator[Choice]:
    if node.model is None:
        arguments = get_args(node.annotation)
        if get_origin(node.annotation) is tuple:
            yield from _choices(SchemaNode.of(arguments[0]), f"{path}.0")
        elif get_origin(node.annotation) is dict:
            for name in _NAMES.get(path.rpartition(".")[2], ()):
                yield from _choices(SchemaNode.of(arguments[1]), f"{path}.{name}")
        return
    for field in node.model.model_fields.values():
        at = f"{path}.{field.alias}" if path else str(field.alias)
        if at in _ELSEWHERE or at.endswith((*_FILES, *_OF_ROLES)):
            continue
        below = SchemaNode.of(field.annotation, field.metadata)
        words = below.choices or ((True, False) if below.annotation is bool else ())
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        yield from (Choice(at, word, is_default=word == default) for word in words)
        may_be_left_out = not field.is_required() or any(isinstance(mark, FilledIn) for mark in field.metadata)
        if may_be_left_out and (not words or default is None):
            yield from (Choice(at, PRESENT), Choice(at, ABSENT, is_default=True))
        yield from _choices(below, at)


@cache
def shapes() -> tuple[dict[str, dict[str, Any]], list[Choice]]:
    """The configurations by name, and the choices that none of them has."""
    found: dict[str, dict[str, Any]] = {}
    missing = list(choices())
    rounds = 0
    while missing:
        before = len(missing)
        rounds += 1
        for name, base in _BASES.items():
            shape = _with(base, missing)
            left = [choice for choice in missing if not choice.is_in(shape)]
            if len(left) < len(missing):
                found[f"{name}-{rounds}"] = shape
            missing = left
        if len(missing) == before:
            break
    return found, missing


def _with(base: dict[str, Any], wanted: list[Choice]) -> dict[str, Any]:
    """The base with as many of these choices as the settings take, one at a place."""
    shape = base
    taken: set[str] = {choice.path for choice in wanted if choice.is_in(shape)}
    for choice in wanted:
        if choice.path in taken or choice.value is PRESENT:
            continue
        try:
            candidate = changed(shape, choice.path, choice.value)
        except (KeyError, IndexError, TypeError):
            continue
        if _is_valid(candidate):
            shape = candidate
            taken.add(choice.path)
    return shape


def _is_valid(configuration: dict[str, Any]) -> bool:
    try:
        world.settings(**configuration)
    except ConfigurationError:
        return False
    return True


def _step(place: Any, key: str) -> Any:
    if isinstance(place, Mapping):
        return place.get(key, ABSENT)
    if isinstance(place, list) and key.isdigit() and int(key) < len(place):
        return place[int(key)]
    return ABSENT


_ZONES: Final = f"{GROUPS}/dns-dev/providers/Microsoft.Network"
_DNS: Final = {
    "baseDomain": "example.com",
    "publicZoneID": f"{_ZONES}/dnszones/example.com",
    "privateZoneID": f"{_ZONES}/privateDnsZones/hc1.example.com",
}
_WRITTEN: Final = {"releaseImage": "quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64", "pullSecret": "pull"}
_NAMED_KEY: Final = {**_WRITTEN, "serviceAccountSigningKey": "signer"}
_SIGNING_KEY: Final = {"vaultSecretName": "hc1-signing-key"}
_KEY: Final = {"keyVaultName": "kv-etcd-dev", "keyName": "hc1-etcd", "keyVersion": "0123456789abcdef0123456789abcdef"}
_KMS: Final = {
    "keyVaultType": "KeyVault",
    "activeKey": _KEY,
    "backupKey": {**_KEY, "keyVersion": "fedcba9876543210fedcba9876543210"},
    "keyVaultResourceGroup": "etcd-dev",
    "backupKeyVaultResourceGroup": "etcd-dev",
    "keyVaultAccess": "Public",
}
_OPTIONALS: Final = {
    "backupStorageAccountID": f"{GROUPS}/backup-dev/providers/Microsoft.Storage/storageAccounts/backupsdev",
    "containerRegistryID": f"{GROUPS}/images-dev/providers/Microsoft.ContainerRegistry/registries/imagesdev",
    "externalDnsZoneID": f"{_ZONES}/dnszones/planes.example.com",
    "managementIssuerURL": "https://eastus.oic.prod-aks.azure.com/tenant/issuer",
    "managedIdentities": [row.field for row in OPTIONAL],
}
_LINK: Final = {
    "type": "PrivateLink",
    "privateLink": {"natSubnetID": f"{VNET}/subnets/nat", "additionalAllowedSubscriptions": [world.DEPLOYER]},
}
_SWIFT: Final = {"type": "Swift", "swift": {"podNetworkInstance": "pni"}}
_EVERYWHERE: Final = {"namespace": "planes", "location": "eastus", "objectEncoding": "utf-8", "kms": _KMS, **_OPTIONALS}
_CREATED: Final = ("resourceGroup", "vnetID", "subnetID", "securityGroupID", "dnsZoneResourceGroup", "issuerURL")
_WORKLOAD: Final = {
    "name": "reader",
    "image": "registry.example.com/reader:1",
    "command": ["/reader"],
    "args": ["--once"],
    "identities": ["network", "disk"],
    "replicas": 2,
    "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
    "serviceAccount": "reader",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "reader", "effect": "NoExecute"}],
}
_TOLERATING: Final = {"key": "dedicated", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}


def _one(**cluster: Any) -> list[dict[str, Any]]:
    return [hosted_cluster(**_EVERYWHERE, **cluster)]


def _identity(field: str) -> dict[str, Any]:
    """A managed identity whose credential has been issued elsewhere."""
    return {
        "source": "managed-identity",
        "enabled": True,
        "secretName": f"{field.lower()}-elsewhere",
        "objectEncoding": "utf-8",
        "resourceId": f"{GROUPS}/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{field}",
        "clientId": world.REGISTRY["clientId"],
        "credential": {"secretName": f"{field.lower()}-elsewhere"},
    }


def _created(**cluster: Any) -> dict[str, Any]:
    given = hosted_cluster(
        infrastructure="create",
        network={"addressPrefix": "10.0.0.0/16", "subnetAddressPrefix": "10.0.0.0/24"},
        issuer="create",
        issuerName="hc1created",
        serviceAccountSigningKey={"published": [1, 2], "signing": 1, "leaked": []},
        dns={key: _DNS[key] for key in ("baseDomain", "publicZoneID")},
        externalDnsDomain="planes.example.com",
        **cluster,
    )
    return {key: value for key, value in given.items() if key not in _CREATED}


# What a choice needs beside it, once in each way that the hosted cluster can be built.
_BASES: Final[Mapping[str, dict[str, Any]]] = {
    "stack": {
        "clusterSide": "stack",
        "blockInstanceMetadata": True,
        "probe": {"image": "registry.example.com/probe:1"},
        "hostedClusters": _one(
            workloads=[_WORKLOAD],
            identities={row.field: {"enabled": True, "objectEncoding": "utf-8"} for row in CONTROL_PLANE},
        ),
    },
    "tolerating": {
        "clusterSide": "stack",
        "hostedClusters": _one(
            dns={"baseDomain": "example.com"}, workloads=[{**_WORKLOAD, "tolerations": [_TOLERATING]}]
        ),
    },
    "imported": {
        "clusterSide": "stack",
        "hostedClusters": _one(identities={row.field: _identity(row.field) for row in CONTROL_PLANE}),
    },
    "written": {
        "clusterSide": "hypershift",
        "hostedClusters": _one(
            dns=_DNS,
            externalDnsDomain="planes.example.com",
            hostedCluster=_NAMED_KEY,
            topology="Public",
            identities={row.field: {"enabled": True} for row in CONTROL_PLANE},
            dataPlaneIdentities={
                row.field: {"name": "earlier", "location": "eastus", "federatedCredentials": {}} for row in DATA_PLANE
            },
        ),
    },
    "signing": {
        "clusterSide": "hypershift",
        "hostedClusters": _one(
            dns=_DNS,
            externalDnsDomain="planes.example.com",
            hostedCluster=_WRITTEN,
            serviceAccountSigningKey=_SIGNING_KEY,
        ),
    },
    "encrypted": {
        "clusterSide": "hypershift",
        "hostedClusters": [
            hosted_cluster(
                kms=None,
                dns=_DNS,
                externalDnsDomain="planes.example.com",
                hostedCluster={**_NAMED_KEY, "etcdEncryption": "aescbc"},
            )
        ],
    },
    "private-link": {
        "clusterSide": "hypershift",
        "hostedClusters": _one(dns=_DNS, hostedCluster=_NAMED_KEY, topology="Private", private=_LINK),
    },
    "swift": {
        "clusterSide": "hypershift",
        "hostedClusters": _one(
            dns=_DNS,
            externalDnsDomain="planes.example.com",
            hostedCluster=_NAMED_KEY,
            topology="PublicAndPrivate",
            private=_SWIFT,
        ),
    },
    "created": {"clusterSide": "hypershift", "probe": {}, "hostedClusters": [_created(hostedCluster=_WRITTEN)]},
    "merged": {
        "clusterSide": "hypershift",
        "hostedClusters": _one(
            hostedCluster={
                "manifest": {
                    "spec": {
                        "release": {"image": "registry.example.com/release:1"},
                        "pullSecret": {"name": "pull"},
                        "serviceAccountSigningKey": {"name": "signer"},
                        "services": [
                            {"service": service, "servicePublishingStrategy": {"type": "Route"}}
                            for service in ("APIServer", "OAuthServer", "Konnectivity", "Ignition")
                        ],
                    }
                }
            }
        ),
    },
    "self-managed": {
        "clusterSide": "hypershift",
        "hostedClusters": [
            hosted_cluster(
                **{key: value for key, value in _EVERYWHERE.items() if key != "objectEncoding"},
                authentication="workload-identities",
                workloadIdentities={row.field: {} for row in CONTROL_PLANE if row.workload is not None},
                topology="PublicAndPrivate",
                private=_LINK,
                dns=_DNS,
                hostedCluster=_NAMED_KEY,
            )
        ],
    },
}
