"""Each identity's own roles grant its proof call, and refuse the calls that no role of it grants.

The tables are those of HyperShift's role assignments (GUIDs and scopes) and of the requests its operators make, written
out here so that neither the program's catalogue nor the role table can agree with itself by mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcloud.azure.keyvault.keys import Keys
from localcloud.azure.keyvault.secrets import Vaults
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.arm import SUBSCRIPTION, ArmWorld, error, vault_body

M, N, V, D = (f"{SUBSCRIPTION}/resourceGroups/{name}" for name in ("managed", "nsg", "network", "dns"))
ETCD = f"{SUBSCRIPTION}/resourceGroups/keys/providers/Microsoft.KeyVault/vaults/kv-etcd"
NETWORK = f"{V}/providers/Microsoft.Network/virtualNetworks/hc1-vnet"
SUBNET = f"{NETWORK}/subnets/default"
OTHER_NETWORK = f"{V}/providers/Microsoft.Network/virtualNetworks/hc2-vnet"
OTHER_SUBNET = f"{NETWORK}/subnets/other"
SECURITY_GROUP = f"{N}/providers/Microsoft.Network/networkSecurityGroups/hc1-nsg"
OTHER_GROUP = f"{N}/providers/Microsoft.Network/networkSecurityGroups/hc2-nsg"
ROUTES = f"{V}/providers/Microsoft.Network/routeTables/routes"
NAT = f"{V}/providers/Microsoft.Network/natGateways/nat"
ZONE = f"{D}/providers/Microsoft.Network/dnszones/example.com"
ACCOUNT = f"{SUBSCRIPTION}/resourceGroups/keys/providers/Microsoft.Storage/storageAccounts/backups"
CONTAINERS = f"{ACCOUNT}/blobServices/default/containers"
KEY_VERSION = "0123456789abcdef0123456789abcdef"

CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
Roles = dict[str, tuple[str, tuple[str, ...]]]
IDENTITIES: Roles = {
    "cloudProvider": ("a1f96423-95ce-4224-ab27-4e3dc72facd4", (M, N, V)),
    "nodePoolManagement": (CONTRIBUTOR, (M, V)),
    "controlPlaneOperator": (CONTRIBUTOR, (M, N, V)),
    "imageRegistry": ("8b32b316-c2f5-4ddf-b05b-83dacd2d08b5", (M,)),
    "ingress": ("0336e1d3-7a87-462b-b6db-342b63f7802c", (M, V, D)),
    "network": ("be7a6435-15ae-4171-8f30-4a343eff9e8f", (M, V)),
    "disk": ("5b7237c5-45e1-49d6-bc18-a1f62f400748", (M,)),
    "file": ("0d7aedc0-15fd-4a67-a412-efad370c947e", (M, N, V)),
    "kms": ("12338af0-0e69-4776-bea7-57ae8d297424", (ETCD,)),
    "etcdBackup": ("ba92f5b4-2d11-453d-a403-e96b0029c9fe", (ACCOUNT,)),
}

# The same in production: Azure/ARO-HCP `test/e2e-setup/bicep/modules/non-msi-scoped-assignments.bicep` and its checks.
ATTACHED = (SECURITY_GROUP, ROUTES, NAT)
PRODUCTION: Roles = {
    "cloudProvider": ("a1f96423-95ce-4224-ab27-4e3dc72facd4", (M, SUBNET, *ATTACHED)),
    "nodePoolManagement": ("88366f10-ed47-4cc0-9fab-c8a06148393e", (M, SUBNET)),
    "controlPlaneOperator": ("fc0c873f-45e9-4d0d-a7d1-585aab30c6ed", (M, NETWORK, SECURITY_GROUP)),
    "imageRegistry": ("8b32b316-c2f5-4ddf-b05b-83dacd2d08b5", (M, NETWORK)),
    "ingress": ("0336e1d3-7a87-462b-b6db-342b63f7802c", (M, SUBNET, ZONE)),
    "network": ("be7a6435-15ae-4171-8f30-4a343eff9e8f", (M, NETWORK)),
    "disk": ("5b7237c5-45e1-49d6-bc18-a1f62f400748", (M,)),
    "file": ("0d7aedc0-15fd-4a67-a412-efad370c947e", (M, NETWORK, *ATTACHED)),
    "kms": IDENTITIES["kms"],
    "etcdBackup": IDENTITIES["etcdBackup"],
}

LOAD_BALANCERS = f"{M}/providers/Microsoft.Network/loadBalancers"
MACHINES = f"{M}/providers/Microsoft.Compute/virtualMachines"
ACCOUNTS = f"{M}/providers/Microsoft.Storage/storageAccounts"
DISKS = f"{M}/providers/Microsoft.Compute/disks"

GRANTED = [
    ("cloudProvider", LOAD_BALANCERS, "2025-05-01"),
    ("cloudProvider", SECURITY_GROUP, "2025-05-01"),
    ("cloudProvider", SUBNET, "2025-05-01"),
    ("nodePoolManagement", MACHINES, "2024-03-01"),
    ("controlPlaneOperator", M, "2021-04-01"),
    ("controlPlaneOperator", SECURITY_GROUP, "2023-11-01"),
    ("controlPlaneOperator", NETWORK, "2023-11-01"),
    ("imageRegistry", ACCOUNTS, "2023-05-01"),
    ("ingress", SUBNET, "2023-11-01"),
    ("network", NETWORK, "2024-05-01"),
    ("network", f"{M}/providers/Microsoft.Network/networkInterfaces", "2024-05-01"),
    ("network", MACHINES, "2024-03-01"),
    ("disk", DISKS, "2025-01-02"),
    ("disk", M, "2021-04-01"),
    ("file", ACCOUNTS, "2025-01-01"),
    ("file", SUBNET, "2025-01-01"),
    ("etcdBackup", CONTAINERS, "2023-05-01"),
    ("etcdBackup", f"{CONTAINERS}/etcd", "2023-05-01"),
]

REFUSED = [
    *(
        (name, M, "Resources/subscriptions/resourceGroups", M)
        for name in ("ingress", "cloudProvider", "network", "imageRegistry", "file")
    ),
    ("ingress", ZONE, "Network/dnszones", ZONE),
    ("cloudProvider", NETWORK, "Network/virtualNetworks", NETWORK),
    ("network", SUBNET, "Network/virtualNetworks/subnets", SUBNET),
    ("network", LOAD_BALANCERS, "Network/loadBalancers", f"{M}/providers/Microsoft.Network"),
    ("file", SECURITY_GROUP, "Network/networkSecurityGroups", SECURITY_GROUP),
    ("nodePoolManagement", SECURITY_GROUP, "Network/networkSecurityGroups", SECURITY_GROUP),
    *((name, NETWORK, "Network/virtualNetworks", NETWORK) for name in ("disk", "imageRegistry")),
    *((name, SUBNET, "Network/virtualNetworks/subnets", SUBNET) for name in ("disk", "imageRegistry")),
    *((name, SECURITY_GROUP, "Network/networkSecurityGroups", SECURITY_GROUP) for name in ("disk", "imageRegistry")),
    ("kms", M, "Resources/subscriptions/resourceGroups", M),
    ("kms", ETCD, "KeyVault/vaults", ETCD),
    ("etcdBackup", ACCOUNT, "Storage/storageAccounts", ACCOUNT),
    ("etcdBackup", M, "Resources/subscriptions/resourceGroups", M),
    *(
        (name, CONTAINERS, "Storage/storageAccounts/blobServices/containers", f"{ACCOUNT}/blobServices/default")
        for name in ("imageRegistry", "file", "kms")
    ),
    ("kms", DISKS, "Compute/disks", f"{M}/providers/Microsoft.Compute"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArmWorld]:
    """The groups, network, zone and key of a hosted cluster; the tests here only add principals."""
    world = ArmWorld(tmp_path_factory.mktemp("azure"))
    for name in ("managed", "nsg", "network", "dns", "keys"):
        world.group(name)
    world.put(NETWORK, "Microsoft.Network/virtualNetworks", {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}})
    world.put(SUBNET, "Microsoft.Network/virtualNetworks/subnets", {"addressPrefix": "10.0.0.0/24"})
    world.put(OTHER_SUBNET, "Microsoft.Network/virtualNetworks/subnets", {"addressPrefix": "10.0.1.0/24"})
    for group in (SECURITY_GROUP, OTHER_GROUP):
        world.put(group, "Microsoft.Network/networkSecurityGroups", {"securityRules": []})
    world.put(
        OTHER_NETWORK, "Microsoft.Network/virtualNetworks", {"addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}}
    )
    world.put(ROUTES, "Microsoft.Network/routeTables", {})
    world.put(NAT, "Microsoft.Network/natGateways", {})
    blobs = "Microsoft.Storage/storageAccounts/blobServices"
    world.put(ACCOUNT, "Microsoft.Storage/storageAccounts", {})
    world.put(f"{ACCOUNT}/blobServices/default", blobs, {})
    world.put(f"{CONTAINERS}/etcd", f"{blobs}/containers", {"publicAccess": "None"})
    world.put(ZONE, "Microsoft.Network/dnszones", {"zoneType": "Public"})
    assert world.call("PUT", ETCD, vault_body()).status_code == 201
    vault = Vaults(world.resources).named("kv-etcd")
    assert vault is not None
    Keys(world.store).add(vault, "etcd", version=KEY_VERSION)
    yield world
    world.store.close()


def identity(world: ArmWorld, name: str, roles: Roles = IDENTITIES) -> ServicePrincipal:
    role, scopes = roles[name]
    return world.principal(*((role, scope) for scope in scopes))


@pytest.mark.parametrize(("name", "path", "version"), GRANTED)
def test_an_identitys_own_role_grants_its_call(environment: ArmWorld, name: str, path: str, version: str) -> None:
    answer = environment.call("GET", path, caller=identity(environment, name), version=version)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("name", "path", "version"), [*GRANTED, ("imageRegistry", SUBNET, "2023-05-01")])
def test_productions_role_at_the_resources_grants_the_same_calls(
    environment: ArmWorld, name: str, path: str, version: str
) -> None:
    answer = environment.call("GET", path, caller=identity(environment, name, PRODUCTION), version=version)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", PRODUCTION)
@pytest.mark.parametrize("path", [OTHER_NETWORK, OTHER_GROUP, f"{V}/providers/Microsoft.Network/virtualNetworks", V, N])
def test_productions_role_grants_nothing_beside_its_resources(environment: ArmWorld, name: str, path: str) -> None:
    answer = environment.call("GET", path, caller=identity(environment, name, PRODUCTION))
    assert error(answer)[:2] == (403, "AuthorizationFailed")


def test_a_role_at_the_subnet_grants_nothing_at_the_one_beside_it(environment: ArmWorld) -> None:
    for name in ("cloudProvider", "ingress"):
        answer = environment.call("GET", OTHER_SUBNET, caller=identity(environment, name, PRODUCTION))
        assert error(answer)[:2] == (403, "AuthorizationFailed")


@pytest.mark.parametrize("missing", [None, *ATTACHED], ids=["all", "security group", "route table", "NAT gateway"])
@pytest.mark.parametrize("name", ["cloudProvider", "file"])
def test_a_writer_of_the_subnet_may_join_all_that_it_refers_to(
    environment: ArmWorld, name: str, missing: str | None
) -> None:
    role, scopes = PRODUCTION[name]
    caller = environment.principal(*((role, scope) for scope in scopes if scope != missing))
    references = {"networkSecurityGroup": SECURITY_GROUP, "routeTable": ROUTES, "natGateway": NAT}
    properties = {"addressPrefix": "10.0.0.0/24"} | {key: {"id": value} for key, value in references.items()}

    answer = environment.call("PUT", SUBNET, {"properties": properties}, caller=caller)

    if missing is None:
        assert answer.status_code == 200, answer.text
    else:
        assert error(answer)[:2] == (403, "LinkedAuthorizationFailed")
        assert missing in answer.text


@pytest.mark.parametrize(("name", "path", "type_name", "scope"), REFUSED)
def test_a_call_that_no_role_grants_is_refused_in_azures_words(
    environment: ArmWorld, name: str, path: str, type_name: str, scope: str
) -> None:
    caller = identity(environment, name)
    answer = environment.call("GET", path, caller=caller)
    assert error(answer) == (
        403,
        "AuthorizationFailed",
        f"The client '{caller.object_id}' with object id '{caller.object_id}' does not have authorization to perform "
        f"action 'Microsoft.{type_name}/read' over scope '{scope}' or the scope is invalid. If access was recently "
        "granted, please refresh your credentials.",
    )


@pytest.mark.parametrize("name", IDENTITIES)
def test_the_key_encrypts_for_kms_alone(environment: ArmWorld, name: str) -> None:
    answer = environment.vault(
        "POST",
        f"/keys/etcd/{KEY_VERSION}/encrypt",
        {"alg": "RSA-OAEP-256", "value": "dGV4dA"},
        caller=identity(environment, name),
        host="kv-etcd.vault.azure.net",
    )
    assert answer.status_code == (200 if name == "kms" else 403), answer.text


@pytest.mark.parametrize("name", IDENTITIES)
def test_no_identity_reads_a_secret(environment: ArmWorld, name: str) -> None:
    environment.vault("PUT", "/secrets/one", {"value": "v"}, host="kv-etcd.vault.azure.net")
    answer = environment.vault(
        "GET", "/secrets/one", caller=identity(environment, name), host="kv-etcd.vault.azure.net"
    )
    assert error(answer)[:2] == (403, "Forbidden")


def test_the_network_answers_with_its_subnets(environment: ArmWorld) -> None:
    answer = environment.call("GET", NETWORK, caller=identity(environment, "network"))
    assert [subnet["name"] for subnet in answer.json()["properties"]["subnets"]] == ["default", "other"]
