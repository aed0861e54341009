"""A request for each refusal of ARM that `COVERAGE.md` lists, by the name of its case."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
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
from tests.coverage.cloud import CoverageCloud, Provoke, after, call
from tests.coverage.network_refusals import NETWORK_REFUSALS

ARM: Final = "https://management.azure.com"
IDENTITY: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-disk"
OTHER: Final = f"{SUBSCRIPTION}/resourceGroups/other"
ACCOUNTS: Final = "providers/Microsoft.Storage/storageAccounts"
CONTAINERS: Final = f"{GROUP}/{ACCOUNTS}/oidc/blobServices/default/containers"
DELETED: Final = f"{SUBSCRIPTION}/providers/Microsoft.KeyVault/locations/eastus/deletedVaults"
ROLE: Final = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{TWO}"
LOCATION: Final = {"location": "eastus"}
VALUE: Final = {"properties": {"value": "v"}}
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


def _held(method: str, **members: Any) -> Provoke:
    """A request for the vault while this is held."""
    return after(lambda cloud: cloud.hold(**members), then=call(method, VAULT))


def _assign(*grant: str, **properties: Any) -> Provoke:
    return lambda cloud: cloud.assign(*grant, **properties)


def _granted_twice(cloud: CoverageCloud) -> httpx.Response:
    principal = cloud.nobody().object_id
    return after(_assign(ONE, principal), then=_assign(TWO, principal))(cloud)


def _role(**properties: Any) -> Provoke:
    """A custom role of the group that reads."""
    permissions = [{"actions": ["*/read"], "notActions": [], "dataActions": [], "notDataActions": []}]
    whole = {"roleName": "mine", "permissions": permissions, "assignableScopes": [GROUP], **properties}
    return call("PUT", ROLE, {"properties": whole})


def _vault(**properties: Any) -> Provoke:
    return call("PUT", VAULT.replace("kv-idstack-local", "kv-another"), vault_body(**properties))


def _account(name: str = "oidc", group: str = GROUP, **changes: Any) -> Provoke:
    return call("PUT", f"{group}/{ACCOUNTS}/{name}", storage_account_body() | changes)


def _container(name: str = "oidc", **properties: Any) -> Provoke:
    return after(_account(properties={}), then=call("PUT", f"{CONTAINERS}/{name}", {"properties": properties}))


def _credential(name: str, **properties: Any) -> Provoke:
    trust = {"issuer": "https://issuer.example.com", "subject": name, "audiences": ["openshift"], **properties}
    path = f"{IDENTITY}/federatedIdentityCredentials/{name}"
    return after(call("PUT", IDENTITY, LOCATION), then=call("PUT", path, {"properties": trust}))


def _two_credentials_at_once(cloud: CoverageCloud) -> httpx.Response:
    cloud.call("PUT", IDENTITY, LOCATION)

    async def at_once() -> list[httpx.Response]:
        trusts = [{"issuer": "https://issuer.example.com", "subject": name, "audiences": ["a"]} for name in ("1", "2")]
        paths = [f"{IDENTITY}/federatedIdentityCredentials/fed-{trust['subject']}" for trust in trusts]
        writes = [cloud.request("PUT", path, {"properties": trust}) for path, trust in zip(paths, trusts, strict=True)]
        return list(await asyncio.gather(*writes))

    answers = asyncio.run(at_once())
    [refused] = [answer for answer in answers if answer.is_error]
    assert len(cloud.call("GET", f"{IDENTITY}/federatedIdentityCredentials").json()["value"]) == len(answers) - 1
    return refused


def _subnet(cloud: CoverageCloud) -> httpx.Response:
    rules = {"virtualNetworkRules": [{"id": f"{GROUP}/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}]}
    of_the_vault = cloud.principal(("Contributor", VAULT))
    return cloud.call("PUT", VAULT, vault_body(networkAcls=rules), caller=of_the_vault)


def _cluster(name: str = "mgmt", **properties: Any) -> Provoke:
    return call("PUT", CLUSTER.replace("mgmt", name), cluster_body(**properties))


def _cluster_changed(**properties: Any) -> Provoke:
    return after(_cluster(), then=_cluster(**properties))


def _other_audience(cloud: CoverageCloud) -> httpx.Response:
    token = cloud.cloud.tokens.issue(cloud.deployer, "https://vault.azure.net")
    return ask(cloud.arm, ARM, "GET", GROUP, token=token, params={"api-version": "2024-01-01"})


REFUSALS: Final[Mapping[str, Provoke]] = {
    "no api-version": call("GET", GROUP, version=None),
    "api-version that is not a date": call("GET", GROUP, version="latest"),
    "no bearer": lambda cloud: cloud.without(cloud.arm, ARM, "GET", GROUP, **{"api-version": "2024-01-01"}),
    "token for another service": _other_audience,
    "another subscription": call("GET", f"/subscriptions/{ONE}/resourceGroups/g"),
    "no ARM path": call("GET", "/"),
    "type that is not emulated": call("GET", f"{GROUP}/providers/Microsoft.Web/sites/one"),
    "operation that is not emulated": call("PATCH", GROUP, LOCATION),
    "write to a collection": call("PUT", VAULT.rpartition("/")[0], LOCATION),
    "no role": lambda cloud: cloud.call("GET", VAULT, caller=cloud.nobody()),
    "condition that is not met": _not_met,
    "condition that is none": _assign(condition="Exists @Request[x:y]"),
    "no role on a linked resource": _subnet,
    "unregistered provider": _held("GET", unregistered_providers=("Microsoft.KeyVault",)),
    "locked scope": _held("DELETE", locks={GROUP: Lock.CAN_NOT_DELETE}),
    "absent group": call("GET", f"{SUBSCRIPTION}/resourceGroups/nowhere"),
    "absent resource": call("GET", IDENTITY),
    "absent parent": call("GET", f"{VAULT}-2/secrets/one"),
    "body that is not a JSON object": call("PUT", VAULT, []),
    "unknown member of the envelope": call("PUT", IDENTITY, {**LOCATION, "x": 1}),
    "no location": call("PUT", IDENTITY, {}),
    "another location": call("PUT", VAULT, {**vault_body(), "location": "westus"}),
    "vault name": call("PUT", VAULT.replace("kv-idstack-local", "1kv"), vault_body()),
    "filter that is not understood": call("GET", f"{SUBSCRIPTION}/resources", **{"$filter": "colour eq 'red'"}),
    "unknown resource provider": call("GET", f"{SUBSCRIPTION}/providers/Microsoft.Nothing"),
    "vault name in use": after(
        lambda cloud: cloud.group("other"),
        then=call("PUT", f"{OTHER}/providers/Microsoft.KeyVault/vaults/KV-idstack-local", vault_body()),
    ),
    "vault name of a deleted vault": after(call("DELETE", VAULT), then=call("PUT", VAULT, vault_body())),
    "no such deleted vault": call("PUT", f"{VAULT}-2", vault_body(createMode="recover")),
    "purge of a protected vault": after(
        lambda cloud: cloud.create_vault(enablePurgeProtection=True),
        call("DELETE", VAULT),
        then=call("POST", f"{DELETED}/kv-idstack-local/purge"),
    ),
    "unknown property of a vault": _vault(purgeProtection=True),
    "vault without RBAC": _vault(enableRbacAuthorization=None),
    "retention out of range": _vault(softDeleteRetentionInDays=6),
    "retention changed": call("PUT", VAULT, vault_body(softDeleteRetentionInDays=7)),
    "soft delete off": _vault(enableSoftDelete=False),
    "purge protection false": _vault(enablePurgeProtection=False),
    "vault during a failover": after(
        lambda cloud: cloud.hold(read_only_vaults=("kv-idstack-local",)),
        then=call("PUT", f"{VAULT}/secrets/one", VALUE),
    ),
    "IP rule that is not an address": _vault(networkAcls={"ipRules": [{"value": "x"}]}),
    "secret through ARM deleted": call("DELETE", f"{VAULT}/secrets/one"),
    "secret name of a deleted secret": after(
        lambda cloud: cloud.vault("PUT", "/secrets/one", {"value": "v"}),
        lambda cloud: cloud.vault("DELETE", "/secrets/one"),
        then=call("PUT", f"{VAULT}/secrets/one", VALUE),
    ),
    "identity name": call("PUT", IDENTITY.replace("hc1-disk", "ab"), LOCATION),
    "two credentials at once": _two_credentials_at_once,
    "issuer and subject twice": after(_credential("one"), then=_credential("two", subject="one")),
    "twenty-first credential": after(
        *(_credential(f"fed-{number}") for number in range(20)), then=_credential("fed-20")
    ),
    "issuer without https": _credential("one", issuer="http://issuer.example.com"),
    "several audiences": _credential("one", audiences=["a", "b"]),
    "absent federated credential": after(
        call("PUT", IDENTITY, LOCATION), then=call("GET", f"{IDENTITY}/federatedIdentityCredentials/one")
    ),
    "absent role assignment": call("GET", _assignment(ONE)),
    "assignment name that is not a GUID": _assign("reader"),
    "principal that is not a GUID": _assign(principal_id="me"),
    "role that is not an id": _assign(roleDefinitionId="Reader"),
    "absent role": call("GET", f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{ONE}"),
    "absent custom role, or one that is not assignable there": after(
        _role(assignableScopes=[f"{GROUP}-2"]), then=_assign(roleDefinitionId=ROLE)
    ),
    "name of another role": _role(roleName="Reader"),
    "custom role deleted while it is assigned": after(
        _role(), _assign(roleDefinitionId=ROLE), then=call("DELETE", ROLE)
    ),
    "custom role with a part missing": _role(assignableScopes=[]),
    "unknown principal type": _assign(principalType="Robot"),
    "principal not found": _assign(principal_id=ONE, principalType=None),
    "wrong principal type": _assign(principalType="User"),
    "same grant, another name": _granted_twice,
    "same name, another grant": after(_assign(), then=_assign()),
    "managed cluster's name": _cluster("mgmt-"),
    "DNS prefix of a cluster": _cluster(dnsPrefix=None),
    "cluster without node pools": _cluster(agentPoolProfiles=None),
    "cluster without a system pool": _cluster(agentPoolProfiles=[{**POOL, "mode": "User"}]),
    "Kubernetes version that is none": _cluster(kubernetesVersion="latest"),
    "no local accounts and no Entra ID": _cluster(aadProfile=None),
    "Entra ID switched off": _cluster_changed(aadProfile={"managed": False}),
    "another DNS prefix": _cluster_changed(dnsPrefix="other"),
    "cluster made private later": _cluster_changed(apiServerAccessProfile={"enablePrivateCluster": True}),
    "public name of a private cluster without": after(
        lambda cloud: Endpoint("https://127.0.0.1:6443", "", ClusterKind.BUILT_IN).save(cloud.store),
        _cluster(apiServerAccessProfile={"enablePrivateCluster": True, "enablePrivateClusterPublicFQDN": False}),
        then=call("POST", f"{CLUSTER}/listClusterUserCredential", **{"server-fqdn": "public"}),
    ),
    "another size of a pool's machines": _cluster_changed(agentPoolProfiles=[{**POOL, "vmSize": "Standard_D8s_v5"}]),
    "another number of a pool's pods": after(
        _cluster(agentPoolProfiles=[{**POOL, "maxPods": 250}]),
        then=_cluster(agentPoolProfiles=[{**POOL, "maxPods": 30}]),
    ),
    "pods that no machine has": _cluster(agentPoolProfiles=[{**POOL, "maxPods": 300}]),
    "operating system that is none": _cluster(agentPoolProfiles=[{**POOL, "osSKU": "BSD"}]),
    "availability zone that is none": _cluster(agentPoolProfiles=[{**POOL, "availabilityZones": ["4"]}]),
    "Azure's network policy with kubenet": _cluster(
        networkProfile={"networkPlugin": "kubenet", "networkPolicy": "azure"}
    ),
    "more pods than addresses": _cluster(
        networkProfile={"networkPlugin": "azure"},
        agentPoolProfiles=[{**POOL, "count": 300, "maxPods": 250}],
    ),
    "pool added to a cluster": _cluster_changed(agentPoolProfiles=[POOL, {**POOL, "name": "second"}]),
    "somebody's node resource group": after(
        _cluster(nodeResourceGroup="nodes"), then=_cluster("second", nodeResourceGroup="nodes")
    ),
    **NETWORK_REFUSALS,
    "account name": _account("Bad_Name"),
    "account name in use": after(_account(), lambda cloud: cloud.group("other"), then=_account(group=OTHER)),
    "account without a SKU": _account(sku=None),
    "account of an unknown kind": _account(kind="V3"),
    "firewall of an account without a member": _account(properties={"networkAcls": {"ipRules": []}}),
    "unknown property of an account": _account(properties={"x": 1}),
    "container name": _container("Bad"),
    "name of a file share": after(
        _account(), then=call("PUT", f"{GROUP}/{ACCOUNTS}/oidc/fileServices/default/shares/Bad", {})
    ),
    "public container of a private account": _container(publicAccess="Container"),
    "unknown access to a container": _container(publicAccess="All"),
    "unknown property of a container": _container(x=1),
    "absent container": after(_account(), then=call("GET", f"{CONTAINERS}/oidc")),
}
