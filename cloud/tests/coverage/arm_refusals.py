"""A request for each refusal of ARM that `COVERAGE.md` lists, by the name of its case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx

from localcloud.azure.shared.held import Lock
from localcloud.core.cluster import ClusterKind, Endpoint
from localcloud.testing.arm import (
    CLUSTER,
    GROUP,
    ONE,
    SUBSCRIPTION,
    TWO,
    VAULT,
    cluster_body,
    storage_account_body,
    vault_body,
)
from localcloud.testing.azure import ask
from tests.coverage.cloud import CoverageCloud
from tests.coverage.network_refusals import NETWORK_REFUSALS

ARM: Final = "https://management.azure.com"
IDENTITY: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-disk"
ACCOUNTS: Final = "providers/Microsoft.Storage/storageAccounts"
DEFINITIONS: Final = "providers/Microsoft.Authorization/roleDefinitions"
LOCATION: Final = {"location": "eastus"}
POOL: Final = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5"}


def _assignment(name: str, scope: str = GROUP) -> str:
    return f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"


def _not_met(cloud: CoverageCloud) -> httpx.Response:
    """A write by somebody who may assign no role."""
    somebody = cloud.nobody()
    never = "!(ActionMatches{'Microsoft.Authorization/roleAssignments/*'})"
    rights = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/f58310d9-a9f6-439a-9e8d-f62e7b41a168"
    made = cloud.assign(TWO, somebody.object_id, roleDefinitionId=rights, condition=never)
    assert made.status_code == 201, made.text
    return cloud.call("PUT", _assignment(ONE), {"properties": {}}, caller=somebody)


def _written_during_failover(cloud: CoverageCloud) -> httpx.Response:
    cloud.hold(read_only_vaults=("kv-idstack-local",))
    return cloud.call("PUT", f"{VAULT}/secrets/one", {"properties": {"value": "v"}})


def _held(cloud: CoverageCloud, method: str, **members: Any) -> httpx.Response:
    """A request for the vault while this is held."""
    cloud.hold(**members)
    return cloud.call(method, VAULT)


def _granted_twice(cloud: CoverageCloud) -> httpx.Response:
    principal = cloud.nobody().object_id
    cloud.assign(ONE, principal)
    return cloud.assign(TWO, principal)


def _granted_again(cloud: CoverageCloud) -> httpx.Response:
    cloud.assign()
    return cloud.assign()


def _role(cloud: CoverageCloud, guid: str = TWO, **properties: Any) -> httpx.Response:
    """A custom role of the group that reads."""
    permissions = [{"actions": ["*/read"], "notActions": [], "dataActions": [], "notDataActions": []}]
    whole = {"roleName": "mine", "permissions": permissions, "assignableScopes": [GROUP], **properties}
    return cloud.call("PUT", f"{SUBSCRIPTION}/{DEFINITIONS}/{guid}", {"properties": whole})


def _assigned_role(cloud: CoverageCloud) -> httpx.Response:
    _role(cloud)
    assert cloud.assign(roleDefinitionId=f"{SUBSCRIPTION}/{DEFINITIONS}/{TWO}").status_code == 201
    return cloud.call("DELETE", f"{SUBSCRIPTION}/{DEFINITIONS}/{TWO}")


def _assigned_elsewhere(cloud: CoverageCloud) -> httpx.Response:
    _role(cloud, assignableScopes=[f"{GROUP}-2"])
    return cloud.assign(roleDefinitionId=f"{SUBSCRIPTION}/{DEFINITIONS}/{TWO}")


def _vault(cloud: CoverageCloud, **properties: Any) -> httpx.Response:
    return cloud.call("PUT", VAULT.replace("kv-idstack-local", "kv-another"), vault_body(**properties))


def _account(cloud: CoverageCloud, name: str = "oidc", group: str = GROUP, **changes: Any) -> httpx.Response:
    return cloud.call("PUT", f"{group}/{ACCOUNTS}/{name}", storage_account_body() | changes)


def _account_taken(cloud: CoverageCloud) -> httpx.Response:
    _account(cloud)
    return _account(cloud, group=cloud.group("other"))


def _container(cloud: CoverageCloud, name: str = "oidc", **properties: Any) -> httpx.Response:
    _account(cloud, properties={})
    path = f"{GROUP}/{ACCOUNTS}/oidc/blobServices/default/containers/{name}"
    return cloud.call("PUT", path, {"properties": properties})


def _share(cloud: CoverageCloud) -> httpx.Response:
    _account(cloud)
    return cloud.call("PUT", f"{GROUP}/{ACCOUNTS}/oidc/fileServices/default/shares/Bad", {})


def _absent_container(cloud: CoverageCloud) -> httpx.Response:
    _account(cloud)
    return cloud.call("GET", f"{GROUP}/{ACCOUNTS}/oidc/blobServices/default/containers/oidc")


def _credential(cloud: CoverageCloud, name: str, **properties: Any) -> httpx.Response:
    cloud.call("PUT", IDENTITY, LOCATION)
    trust = {"issuer": "https://issuer.example.com", "subject": name, "audiences": ["openshift"], **properties}
    return cloud.call("PUT", f"{IDENTITY}/federatedIdentityCredentials/{name}", {"properties": trust})


def _absent_credential(cloud: CoverageCloud) -> httpx.Response:
    cloud.call("PUT", IDENTITY, LOCATION)
    return cloud.call("GET", f"{IDENTITY}/federatedIdentityCredentials/one")


def _two_credentials_at_once(cloud: CoverageCloud) -> httpx.Response:
    cloud.call("PUT", IDENTITY, LOCATION)

    async def at_once() -> list[httpx.Response]:
        trusts = [
            {"issuer": "https://issuer.example.com", "subject": subject, "audiences": ["a"]} for subject in ("1", "2")
        ]
        paths = [f"{IDENTITY}/federatedIdentityCredentials/fed-{trust['subject']}" for trust in trusts]
        writes = [cloud.request("PUT", path, {"properties": trust}) for path, trust in zip(paths, trusts, strict=True)]
        return list(await asyncio.gather(*writes))

    [refused] = [answer for answer in asyncio.run(at_once()) if answer.is_error]
    return refused


def _twenty_first_credential(cloud: CoverageCloud) -> httpx.Response:
    for number in range(20):
        _credential(cloud, f"fed-{number}")
    return _credential(cloud, "fed-20")


def _trusted_twice(cloud: CoverageCloud) -> httpx.Response:
    _credential(cloud, "one")
    return _credential(cloud, "two", subject="one")


def _deleted_vault_taken(cloud: CoverageCloud) -> httpx.Response:
    cloud.call("DELETE", VAULT)
    return cloud.call("PUT", VAULT, vault_body())


def _purge(cloud: CoverageCloud) -> httpx.Response:
    cloud.create_vault(enablePurgeProtection=True)
    cloud.call("DELETE", VAULT)
    place = f"{SUBSCRIPTION}/providers/Microsoft.KeyVault/locations/eastus/deletedVaults/kv-idstack-local"
    return cloud.call("POST", f"{place}/purge")


def _deleted_secret_taken(cloud: CoverageCloud) -> httpx.Response:
    cloud.vault("PUT", "/secrets/one", {"value": "v"})
    cloud.vault("DELETE", "/secrets/one")
    return cloud.call("PUT", f"{VAULT}/secrets/one", {"properties": {"value": "v"}})


def _subnet(cloud: CoverageCloud) -> httpx.Response:
    rules = {"virtualNetworkRules": [{"id": f"{GROUP}/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}]}
    of_the_vault = cloud.principal(("Contributor", VAULT))
    return cloud.call("PUT", VAULT, vault_body(networkAcls=rules), caller=of_the_vault)


def _cluster(cloud: CoverageCloud, name: str = "mgmt", **properties: Any) -> httpx.Response:
    return cloud.call("PUT", CLUSTER.replace("mgmt", name), cluster_body(**properties))


def _cluster_changed(cloud: CoverageCloud, **properties: Any) -> httpx.Response:
    assert _cluster(cloud).status_code == 201
    return _cluster(cloud, **properties)


def _other_pods(cloud: CoverageCloud) -> httpx.Response:
    assert _cluster(cloud, agentPoolProfiles=[{**POOL, "maxPods": 250}]).status_code == 201
    return _cluster(cloud, agentPoolProfiles=[{**POOL, "maxPods": 30}])


def _taken_node_group(cloud: CoverageCloud) -> httpx.Response:
    assert _cluster(cloud, nodeResourceGroup="nodes").status_code == 201
    return _cluster(cloud, "second", nodeResourceGroup="nodes")


def _no_public_name(cloud: CoverageCloud) -> httpx.Response:
    private = {"enablePrivateCluster": True, "enablePrivateClusterPublicFQDN": False}
    Endpoint("https://127.0.0.1:6443", "", ClusterKind.BUILT_IN).save(cloud.store)
    assert _cluster(cloud, apiServerAccessProfile=private).status_code == 201
    return cloud.call("POST", f"{CLUSTER}/listClusterUserCredential", **{"server-fqdn": "public"})


def _other_audience(cloud: CoverageCloud) -> httpx.Response:
    token = cloud.cloud.tokens.issue(cloud.deployer, "https://vault.azure.net")
    return ask(cloud.arm, ARM, "GET", GROUP, token=token, params={"api-version": "2024-01-01"})


REFUSALS: Final[Mapping[str, Callable[[CoverageCloud], httpx.Response]]] = {
    "no api-version": lambda cloud: cloud.call("GET", GROUP, version=None),
    "api-version that is not a date": lambda cloud: cloud.call("GET", GROUP, version="latest"),
    "no bearer": lambda cloud: cloud.without(cloud.arm, ARM, "GET", GROUP, **{"api-version": "2024-01-01"}),
    "token for another service": _other_audience,
    "another subscription": lambda cloud: cloud.call("GET", f"/subscriptions/{ONE}/resourceGroups/g"),
    "no ARM path": lambda cloud: cloud.call("GET", "/"),
    "type that is not emulated": lambda cloud: cloud.call("GET", f"{GROUP}/providers/Microsoft.Web/sites/one"),
    "operation that is not emulated": lambda cloud: cloud.call("PATCH", GROUP, LOCATION),
    "write to a collection": lambda cloud: cloud.call("PUT", VAULT.rpartition("/")[0], LOCATION),
    "no role": lambda cloud: cloud.call("GET", VAULT, caller=cloud.nobody()),
    "condition that is not met": _not_met,
    "condition that is none": lambda cloud: cloud.assign(condition="Exists @Request[x:y]"),
    "no role on a linked resource": _subnet,
    "unregistered provider": lambda cloud: _held(cloud, "GET", unregistered_providers=("Microsoft.KeyVault",)),
    "locked scope": lambda cloud: _held(cloud, "DELETE", locks={GROUP: Lock.CAN_NOT_DELETE}),
    "absent group": lambda cloud: cloud.call("GET", f"{SUBSCRIPTION}/resourceGroups/nowhere"),
    "absent resource": lambda cloud: cloud.call("GET", IDENTITY),
    "absent parent": lambda cloud: cloud.call("GET", f"{VAULT}-2/secrets/one"),
    "body that is not a JSON object": lambda cloud: cloud.call("PUT", VAULT, []),
    "unknown member of the envelope": lambda cloud: cloud.call("PUT", IDENTITY, {**LOCATION, "x": 1}),
    "no location": lambda cloud: cloud.call("PUT", IDENTITY, {}),
    "another location": lambda cloud: cloud.call("PUT", VAULT, {**vault_body(), "location": "westus"}),
    "vault name": lambda cloud: cloud.call("PUT", VAULT.replace("kv-idstack-local", "1kv"), vault_body()),
    "filter that is not understood": lambda cloud: cloud.call(
        "GET", f"{SUBSCRIPTION}/resources", **{"$filter": "colour eq 'red'"}
    ),
    "unknown resource provider": lambda cloud: cloud.call("GET", f"{SUBSCRIPTION}/providers/Microsoft.Nothing"),
    "vault name in use": lambda cloud: cloud.call(
        "PUT", f"{cloud.group('other')}/providers/Microsoft.KeyVault/vaults/kv-idstack-local", vault_body()
    ),
    "vault name of a deleted vault": _deleted_vault_taken,
    "no such deleted vault": lambda cloud: cloud.call("PUT", f"{VAULT}-2", vault_body(createMode="recover")),
    "purge of a protected vault": _purge,
    "unknown property of a vault": lambda cloud: _vault(cloud, purgeProtection=True),
    "vault without RBAC": lambda cloud: _vault(cloud, enableRbacAuthorization=None),
    "retention out of range": lambda cloud: _vault(cloud, softDeleteRetentionInDays=6),
    "retention changed": lambda cloud: cloud.call("PUT", VAULT, vault_body(softDeleteRetentionInDays=7)),
    "soft delete off": lambda cloud: _vault(cloud, enableSoftDelete=False),
    "purge protection false": lambda cloud: _vault(cloud, enablePurgeProtection=False),
    "vault during a failover": _written_during_failover,
    "IP rule that is not an address": lambda cloud: _vault(cloud, networkAcls={"ipRules": [{"value": "x"}]}),
    "secret through ARM deleted": lambda cloud: cloud.call("DELETE", f"{VAULT}/secrets/one"),
    "secret name of a deleted secret": _deleted_secret_taken,
    "identity name": lambda cloud: cloud.call("PUT", IDENTITY.replace("hc1-disk", "ab"), LOCATION),
    "two credentials at once": _two_credentials_at_once,
    "issuer and subject twice": _trusted_twice,
    "twenty-first credential": _twenty_first_credential,
    "issuer without https": lambda cloud: _credential(cloud, "one", issuer="http://issuer.example.com"),
    "several audiences": lambda cloud: _credential(cloud, "one", audiences=["a", "b"]),
    "absent federated credential": _absent_credential,
    "absent role assignment": lambda cloud: cloud.call("GET", _assignment(ONE)),
    "assignment name that is not a GUID": lambda cloud: cloud.assign("reader"),
    "principal that is not a GUID": lambda cloud: cloud.assign(principal_id="me"),
    "role that is not an id": lambda cloud: cloud.assign(roleDefinitionId="Reader"),
    "absent role": lambda cloud: cloud.call(
        "GET", f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{ONE}"
    ),
    "absent custom role, or one that is not assignable there": _assigned_elsewhere,
    "name of another role": lambda cloud: _role(cloud, roleName="Reader"),
    "custom role deleted while it is assigned": _assigned_role,
    "custom role with a part missing": lambda cloud: _role(cloud, assignableScopes=[]),
    "unknown principal type": lambda cloud: cloud.assign(principalType="Robot"),
    "principal not found": lambda cloud: cloud.assign(principal_id=ONE, principalType=None),
    "wrong principal type": lambda cloud: cloud.assign(principalType="User"),
    "same grant, another name": _granted_twice,
    "same name, another grant": _granted_again,
    "managed cluster's name": lambda cloud: _cluster(cloud, "mgmt-"),
    "DNS prefix of a cluster": lambda cloud: _cluster(cloud, dnsPrefix=None),
    "cluster without node pools": lambda cloud: _cluster(cloud, agentPoolProfiles=None),
    "cluster without a system pool": lambda cloud: _cluster(cloud, agentPoolProfiles=[{**POOL, "mode": "User"}]),
    "Kubernetes version that is none": lambda cloud: _cluster(cloud, kubernetesVersion="latest"),
    "no local accounts and no Entra ID": lambda cloud: _cluster(cloud, aadProfile=None),
    "Entra ID switched off": lambda cloud: _cluster_changed(cloud, aadProfile={"managed": False}),
    "another DNS prefix": lambda cloud: _cluster_changed(cloud, dnsPrefix="other"),
    "cluster made private later": lambda cloud: _cluster_changed(
        cloud, apiServerAccessProfile={"enablePrivateCluster": True}
    ),
    "public name of a private cluster without": _no_public_name,
    "another size of a pool's machines": lambda cloud: _cluster_changed(
        cloud, agentPoolProfiles=[{**POOL, "vmSize": "Standard_D8s_v5"}]
    ),
    "another number of a pool's pods": _other_pods,
    "pods that no machine has": lambda cloud: _cluster(cloud, agentPoolProfiles=[{**POOL, "maxPods": 300}]),
    "operating system that is none": lambda cloud: _cluster(cloud, agentPoolProfiles=[{**POOL, "osSKU": "BSD"}]),
    "availability zone that is none": lambda cloud: _cluster(
        cloud, agentPoolProfiles=[{**POOL, "availabilityZones": ["4"]}]
    ),
    "Azure's network policy with kubenet": lambda cloud: _cluster(
        cloud, networkProfile={"networkPlugin": "kubenet", "networkPolicy": "azure"}
    ),
    "more pods than addresses": lambda cloud: _cluster(
        cloud,
        networkProfile={"networkPlugin": "azure"},
        agentPoolProfiles=[{**POOL, "count": 300, "maxPods": 250}],
    ),
    "pool added to a cluster": lambda cloud: _cluster_changed(
        cloud, agentPoolProfiles=[POOL, {**POOL, "name": "second"}]
    ),
    "somebody's node resource group": _taken_node_group,
    **NETWORK_REFUSALS,
    "account name": lambda cloud: _account(cloud, "Bad_Name"),
    "account name in use": _account_taken,
    "account without a SKU": lambda cloud: _account(cloud, sku=None),
    "account of an unknown kind": lambda cloud: _account(cloud, kind="V3"),
    "firewall of an account without a member": lambda cloud: _account(
        cloud, properties={"networkAcls": {"ipRules": []}}
    ),
    "unknown property of an account": lambda cloud: _account(cloud, properties={"x": 1}),
    "container name": lambda cloud: _container(cloud, "Bad"),
    "name of a file share": _share,
    "public container of a private account": lambda cloud: _container(cloud, publicAccess="Container"),
    "unknown access to a container": lambda cloud: _container(cloud, publicAccess="All"),
    "unknown property of a container": lambda cloud: _container(cloud, x=1),
    "absent container": _absent_container,
}
