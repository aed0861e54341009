"""Microsoft.ContainerService: the management cluster, seeded or created by a stack.

`addonProfiles.azureKeyvaultSecretsProvider.identity` in its answer is the key-vault-user of a stack on AKS. Every
cluster here is the one Kubernetes API of this machine, which serves the add-on's kinds from the start and keeps its
objects when a cluster is deleted. Sources: the provider's REST reference; messages as users report them.

Left out: agent pools as resources of their own, PATCH, upgrades, stopping; a cluster is there at once.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.managedidentity import NodeGroup
from localcloud.azure.arm.resource_type import Call, ResourceType, SeededType, WrittenType, enumerated
from localcloud.azure.resource_store import public
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.core.arm_ids import in_lower_case
from localcloud.core.clouds import AKS_CLIENT_APP_ID, AKS_SERVER_APP_ID
from localcloud.core.cluster import ADMINISTRATOR, Endpoint, token
from localcloud.core.documents import document
from localcloud.core.store import Document
from localcloud.core.yaml_text import dump

# The `properties` of a managed cluster: validation, the service's own values, and what cannot be changed later.
#
# Sources: `managedClusters.json` 2025-09-01 (azure-rest-api-specs) with its example
# `ManagedClustersCreate_AzureKeyvaultSecretsProvider`; for the messages the trackers that COVERAGE.md names. What a PUT
# leaves out stays as it is.

ADD_ON: Final = "azureKeyvaultSecretsProvider"
DEFAULT_VERSION: Final = "1.35"
_PATCH: Final = "4"  # the newest patch of each minor version
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,52}[A-Za-z0-9])?")
_VERSION: Final = re.compile(r"\d+\.\d+(\.\d+)?")
_RULES: Final = "Please see https://aka.ms/aks-naming-rules for more details."
_FIXED: Final = ("dnsPrefix", "nodeResourceGroup")
_FIXED_OF_A_POOL: Final = ("maxPods", "availabilityZones")
# azure-docs `aks/quotas-skus-regions.md` and `aks/configure-azure-cni.md`.
_LEAST_PODS: Final = 10
_MOST_PODS: Final = 250
_DEFAULT_PODS: Final = 30
_ADDRESSES: Final = 2**16 - 5
_ZONES: Final = frozenset({"1", "2", "3"})
# `OSSKU` of managedClusters.json 2025-09-01, of Linux.
_OPERATING_SYSTEMS: Final = ("Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux", "AzureLinux3", "CBLMariner")
_NAMES: Final = frozenset({"fqdn", "privateFQDN"})
_READ_ONLY: Final = _NAMES | {"provisioningState", "powerState", "currentKubernetesVersion", "resourceUID"}
# Write-only properties: the parent's name and the property's.
_WRITE_ONLY: Final = (
    ("windowsProfile", "adminPassword"),
    ("servicePrincipalProfile", "secret"),
    ("aadProfile", "serverAppSecret"),
)


def check_name(name: str) -> None:
    """Refuse a name that breaks AKS's rules; raises 400."""
    if not _NAME.fullmatch(name):
        raise _invalid(
            "resourceName", f"Resource name '{name}' is invalid: 1-63 letters, digits, '_' and '-', not at its ends."
        )


def checked_properties(requested: Mapping[str, Any], before: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """The requested properties merged over `before` (empty for a new cluster); raises 400."""
    wanted = {name: value for name, value in requested.items() if value is not None and name not in _READ_ONLY}
    for name in _FIXED:
        if before and name in wanted and wanted[name] != before.get(name):
            raise _change_not_allowed(name)
    properties = {**before, **wanted}
    if "fqdnSubdomain" not in properties:
        _check_prefix(str(properties.get("dnsPrefix") or ""))
    version = str(properties.get("kubernetesVersion") or DEFAULT_VERSION)
    if not _VERSION.fullmatch(version):
        raise refusal("K8sVersionNotSupported", cluster=cluster, version=version)
    _check_pools(properties.get("agentPoolProfiles"), before.get("agentPoolProfiles") or [], cluster)
    _check_network(properties.get("networkProfile") or {}, properties["agentPoolProfiles"])
    _check_entra(properties, before)
    if before and _is_private(properties) is not _is_private(before):
        raise refusal("BadRequest made private")
    for parent, name in _WRITE_ONLY:
        if isinstance(properties.get(parent), dict):
            properties[parent] = {key: value for key, value in properties[parent].items() if key != name}
    return {**properties, "kubernetesVersion": version}


def filled_in(properties: Mapping[str, Any], location: str, tenant_id: str) -> dict[str, Any]:
    """The checked properties with the service's own: state, names, issuer, defaults of the requested parts."""
    # Differs between successive clusters with the same id.
    uid = properties.get("resourceUID") or uuid.uuid4().hex[:24]
    version = properties["kubernetesVersion"]
    full_version = version if version.count(".") > 1 else f"{version}.{_PATCH}"
    prefix = properties.get("fqdnSubdomain") or properties["dnsPrefix"]
    filled = {
        **document(__file__, "cluster defaults"),
        **{name: value for name, value in properties.items() if name not in _NAMES},
        **document(__file__, "cluster state", version=full_version, uid=uid),
        **_names(properties, f"{prefix}-{uid[:8]}", location),
    }
    state = document(__file__, "pool state", version=full_version)
    pools = properties["agentPoolProfiles"]
    filled["agentPoolProfiles"] = [{**document(__file__, "pool defaults"), **pool, **state} for pool in pools]
    filled["networkProfile"] = {**document(__file__, "network defaults"), **filled["networkProfile"]}
    if _has_addresses_of_the_subnet(filled["networkProfile"]):
        filled["networkProfile"].pop("podCidr", None)  # not used, and not kept (terraform-provider-azurerm issue 20573)
    else:
        filled["networkProfile"].setdefault("podCidr", "10.244.0.0/16")
    if (properties.get("aadProfile") or {}).get("managed"):
        filled["aadProfile"] = {"enableAzureRBAC": False, "tenantID": tenant_id, **properties["aadProfile"]}
    if (properties.get("oidcIssuerProfile") or {}).get("enabled"):
        issuer = f"https://{location}.oic.prod-aks.azure.com/{tenant_id}/{uuid.UUID(uid.ljust(32, '0'))}/"
        filled["oidcIssuerProfile"] = {**properties["oidcIssuerProfile"], "issuerURL": issuer}
    return filled


def _names(properties: Mapping[str, Any], host: str, location: str) -> dict[str, str]:
    """The API server's names: a private cluster has one in its private zone, and by default a public one beside it."""
    public = {"fqdn": f"{host}.hcp.{location}.azmk8s.io"}
    if not _is_private(properties):
        return public
    private = {"privateFQDN": f"{host}.{uuid.uuid5(uuid.NAMESPACE_DNS, host)}.privatelink.{location}.azmk8s.io"}
    if properties["apiServerAccessProfile"].get("enablePrivateClusterPublicFQDN") is False:
        return private
    return public | private


def _is_private(properties: Mapping[str, Any]) -> bool:
    return bool((properties.get("apiServerAccessProfile") or {}).get("enablePrivateCluster"))


def runs_add_on(properties: Mapping[str, Any]) -> bool:
    """Whether the secrets-store add-on is on."""
    return bool(((properties.get("addonProfiles") or {}).get(ADD_ON) or {}).get("enabled"))


def _check_prefix(prefix: str) -> None:
    if not _PREFIX.fullmatch(prefix):
        rule = "must contain between 1 and 54 characters" if not 0 < len(prefix) < 55 else "is of letters, digits, '-'"
        raise _invalid("dnsPrefix", f"DNS prefix '{prefix}' is invalid. DNS prefix {rule}. {_RULES}.")


def _check_pools(pools: Any, before: list[dict[str, Any]], cluster: str) -> None:
    if not pools:
        raise refusal("InvalidParameter no pools")
    if not any(enumerated(pool.get("mode"), ("System",)) for pool in pools):
        raise refusal("MustDefineAtLeastOneSystemPool")
    current = {pool["name"]: pool for pool in before}
    for pool in pools if before else ():
        if pool.get("name") not in current:
            raise refusal("BadRequest another pool")
        if pool.get("vmSize") not in (None, current[pool["name"]].get("vmSize")):
            raise _change_not_allowed("agentPoolProfile.vmSize")
        for name in _FIXED_OF_A_POOL:
            if name in pool and pool[name] != current[pool["name"]].get(name, pool[name]):
                raise _change_not_allowed(f"agentPoolProfile.{name}")
    for pool in pools:
        if not _LEAST_PODS <= pool.get("maxPods", _LEAST_PODS) <= _MOST_PODS:
            raise _invalid("agentPoolProfile.maxPods", f"maxPods is {_LEAST_PODS} to {_MOST_PODS}.")
        if pool.get("osSKU", _OPERATING_SYSTEMS[0]) not in _OPERATING_SYSTEMS:
            raise _invalid("agentPoolProfile.osSKU", f"OSSKU='{pool['osSKU']}' is not supported.")
        if zones := sorted(set(pool.get("availabilityZones") or ()) - _ZONES):
            words = {"cluster": cluster, "zones": ",".join(zones), "pool": pool["name"]}
            raise refusal("AvailabilityZoneNotSupported", **words)


def _has_addresses_of_the_subnet(network: Mapping[str, Any]) -> bool:
    """Whether pods have addresses of the nodes' subnet, not of a range of their own."""
    return network.get("networkPlugin") == "azure" and network.get("networkPluginMode") != "overlay"


def _check_network(network: Mapping[str, Any], pools: list[dict[str, Any]]) -> None:
    if network.get("networkPlugin") == "kubenet" and network.get("networkPolicy") == "azure":
        raise refusal("NetworkPolicyAzureNotSupportedForKubenet")
    if _has_addresses_of_the_subnet(network):
        own = [pool for pool in pools if not pool.get("vnetSubnetID")]
        wanted = sum(pool.get("count", 1) * (pool.get("maxPods", _DEFAULT_PODS) + 1) for pool in own)
        if wanted > _ADDRESSES:
            raise refusal("InsufficientSubnetSize", wanted=wanted, available=_ADDRESSES)


def _check_entra(properties: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    is_on = bool((properties.get("aadProfile") or {}).get("managed"))
    if (before.get("aadProfile") or {}).get("managed") and not is_on:
        raise _change_not_allowed("aadProfile.managed")
    if properties.get("disableLocalAccounts") and not is_on:
        raise refusal("BadRequest no accounts at all")


def _invalid(parameter: str, details: str) -> ServiceError:
    return refusal("InvalidParameter", parameter=parameter, details=details)


def _change_not_allowed(name: str) -> ServiceError:
    return refusal("PropertyChangeNotAllowed", name=name)


class ManagedClusters(WrittenType):
    """AKS clusters, and their kubeconfigs: for users, who sign in at Entra ID, and for administrators, who do not."""

    name = "Microsoft.ContainerService/managedClusters"

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        """The cluster, its id and its type in AKS's own letter case, which is not that of its URL."""
        spelt = {"id": in_lower_case(resource["id"]), "type": "Microsoft.ContainerService/ManagedClusters"}
        return {**public(resource), **spelt}

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=True)
        check_name(call.path.name)
        current = call.current
        before = current["properties"] if current else {}
        properties = checked_properties(call.properties, before, call.path.name)
        with call.cloud.store.transaction():
            cluster = {**resource, **_beside(call, current, resource["id"])}
            cluster["properties"] = _provisioned(call, cluster, properties)
            call.resources.put(cluster)
        return JSONResponse(self.present(call, self.existing(call)), status_code=200 if current else 201)

    def before_deletion(self, call: Call, resource: Document) -> None:
        _nodes(call, resource["id"], resource["properties"]["nodeResourceGroup"]).remove()
        principal = (resource.get("identity") or {}).get("principalId")
        if principal is not None:
            call.cloud.directory.delete_service_principal(principal)

    async def action(self, call: Call) -> Response:
        cluster = self.existing(call)
        match str(call.path.verb).lower():
            case "listclusterusercredential":
                return _credential("clusterUser", _for_users(call, cluster))
            case "listclusteradmincredential":
                return _credential("clusterAdmin", _for_administrators(call, cluster))
        raise errors.not_emulated(f"POST {call.path.verb} of {self.name}")


def _beside(call: Call, current: Document | None, cluster_id: str) -> dict[str, Any]:
    """The members other than `properties`: the SKU, and the cluster's own identity with a principal."""
    known: dict[str, Any] = {
        name: current[name] for name in ("sku", "kind", "identity", "seeded") if current and name in current
    }
    written = {name: call.body[name] for name in ("sku", "kind", "identity") if call.body.get(name) is not None}
    beside: dict[str, Any] = {"sku": {"name": "Base", "tier": "Free"}, "kind": "Base", **known, **written}
    if enumerated((beside.get("identity") or {}).get("type"), ("SystemAssigned",)):
        principal = known.get("identity", {}).get("principalId") or (
            call.cloud.directory.create_managed_identity(cluster_id, call.path.name).object_id
        )
        beside["identity"] = {"type": "SystemAssigned", "principalId": principal, "tenantId": call.cloud.tenant_id}
    return beside


def _provisioned(call: Call, cluster: Document, properties: dict[str, Any]) -> dict[str, Any]:
    """The properties of a cluster with its nodes, and with the identities that AKS creates for them."""
    name, location = call.path.name, cluster["location"]
    group = properties.get("nodeResourceGroup") or f"MC_{call.path.resource_group}_{name}_{location}"[:80].rstrip(".")
    filled = filled_in({**properties, "nodeResourceGroup": group}, location, call.cloud.tenant_id)
    nodes = _nodes(call, cluster["id"], group)
    nodes.create(location, cluster["tags"])
    kubelet = nodes.identity(f"{name}-agentpool", location)
    filled["identityProfile"] = {"kubeletidentity": kubelet}
    attached = [kubelet]
    add_on = f"azurekeyvaultsecretsprovider-{name}"
    profiles = {key: {**profile} for key, profile in (properties.get("addonProfiles") or {}).items()}
    if runs_add_on(properties):
        profiles[ADD_ON]["identity"] = nodes.identity(add_on, location)
        attached.append(profiles[ADD_ON]["identity"])
    else:
        nodes.remove_identity(add_on)
        profiles.get(ADD_ON, {}).pop("identity", None)
    if profiles:
        filled["addonProfiles"] = profiles
    nodes.attach(filled["agentPoolProfiles"], location, attached)
    return filled


def _nodes(call: Call, cluster_id: str, group: str) -> NodeGroup:
    return NodeGroup(call.cloud, call.resources, cluster_id, group)


def _for_users(call: Call, cluster: Document) -> dict[str, Any]:
    properties = cluster["properties"]
    if not (properties.get("aadProfile") or {}).get("managed"):
        return _for_administrators(call, cluster)
    form = call.query.get("format", "exec").lower()
    if form not in {"exec", "azure"}:
        raise errors.bad_request(f"The value of parameter format is invalid: {form}. It must be azure or exec.")
    tenant = properties["aadProfile"].get("tenantID") or call.cloud.tenant_id
    words = {"server": AKS_SERVER_APP_ID, "client": AKS_CLIENT_APP_ID, "tenant": tenant}
    return _kubeconfig(call, cluster, "clusterUser", document(__file__, f"user by {form}", **words))


def _for_administrators(call: Call, cluster: Document) -> dict[str, Any]:
    if cluster["properties"].get("disableLocalAccounts"):
        raise refusal("BadRequest no local accounts")
    endpoint = Endpoint.load(call.cloud.store)
    administrator = {"token": token(call.cloud.store, endpoint.cluster, ADMINISTRATOR)}
    return _kubeconfig(call, cluster, "clusterAdmin", administrator)


def _kubeconfig(call: Call, cluster: Document, kind: str, user: dict[str, Any]) -> dict[str, Any]:
    endpoint, name = Endpoint.load(call.cloud.store), cluster["name"]
    context = f"{name}-admin" if kind == "clusterAdmin" else name
    names = {"cluster": name, "context": context, "who": f"{kind}_{call.path.resource_group}_{name}"}
    server = _server(call, cluster, endpoint)
    return document(__file__, "kubeconfig", **names, ca=endpoint.ca, server=server, user=user)


def _server(call: Call, cluster: Document, endpoint: Endpoint) -> str:
    """The API server's address; a private cluster's private name, which does not resolve here, or its public one."""
    properties = cluster["properties"]
    if "privateFQDN" not in properties:
        return endpoint.server
    if call.query.get("server-fqdn") != "public":
        return f"https://{properties['privateFQDN']}:443"
    if "fqdn" not in properties:
        raise errors.bad_request(f"The private cluster '{cluster['name']}' has no public FQDN.")
    return endpoint.server


def _credential(name: str, kubeconfig: dict[str, Any]) -> JSONResponse:
    text = dump(kubeconfig)
    return JSONResponse({"kubeconfigs": [{"name": name, "value": base64.b64encode(text.encode()).decode()}]})


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types, and the registries that clusters pull from."""
    return ManagedClusters(), SeededType("Microsoft.ContainerRegistry/registries")
