"""What the operators of a hosted cluster write first, each with the role that it has on Azure."""

from __future__ import annotations

import pytest

from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.testing.arm import SUBSCRIPTION, ArmWorld, error, storage_account_body
from localcloud.testing.networks import (
    ADDRESS,
    DISK,
    INTERFACE,
    MACHINE,
    MANAGED,
    NETWORK,
    ZONE,
    address_body,
    attached,
    disk_body,
    interface_body,
    machine_body,
    make,
    record_body,
)

_ROLE = "Azure Red Hat OpenShift {}"
PUBLIC = f"{NETWORK}/dnszones/example.com"


@pytest.fixture
def world(world: ArmWorld) -> ArmWorld:
    """With the whole infrastructure of a cluster, and a public zone."""
    make(world)
    world.put(PUBLIC, "Microsoft.Network/dnszones", {"zoneType": "Public"})
    return world


def operator(world: ArmWorld, role: str) -> ServicePrincipal:
    """A principal with the role of an operator at the managed resource group, as HyperShift and ARO-HCP assign it."""
    return world.principal((_ROLE.format(role), MANAGED))


def test_the_ingress_operator_publishes_and_removes_its_records(world: ArmWorld) -> None:
    ingress = operator(world, "Cluster Ingress Operator")
    public = {"properties": {"TTL": 30, "ARecords": [{"ipv4Address": "203.0.113.7"}], "metadata": {"a": "b"}}}
    written = {f"{ZONE}/A/*.apps": record_body("10.0.0.4"), f"{PUBLIC}/A/*.apps.hc1": public}

    for path, body in written.items():
        assert [world.call("PUT", path, body, caller=ingress).status_code for _ in range(2)] == [201, 200]

    found = world.call("GET", f"{PUBLIC}/A/*.apps.hc1").json()
    assert (found["id"], found["type"]) == (f"{PUBLIC}/A/*.apps.hc1", "Microsoft.Network/dnszones/A")
    assert found["properties"]["fqdn"] == "*.apps.hc1.example.com."
    assert found["properties"].items() >= public["properties"].items()
    [listed] = world.call("GET", f"{ZONE}/A").json()["value"]
    assert listed["properties"]["aRecords"] == [{"ipv4Address": "10.0.0.4"}]
    assert world.call("GET", ZONE).json()["properties"]["numberOfRecordSets"] == 2
    assert [world.call("DELETE", path, caller=ingress).status_code for path in written for _ in range(2)] == [
        *(200, 204),
        *(200, 204),
    ]


def test_external_dns_finds_its_records_and_the_texts_that_own_them(world: ArmWorld) -> None:
    external = world.principal(("DNS Zone Contributor", PUBLIC))
    written = {"A": [{"ipv4Address": "203.0.113.7"}], "TXT": [{"value": ["heritage=external-dns"]}]}

    for kind, records in written.items():
        body = {"properties": {"TTL": 300, f"{kind}Records": records}}
        assert world.call("PUT", f"{PUBLIC}/{kind}/api", body, caller=external).status_code == 201

    found = {
        one["type"]: one["properties"] for one in world.call("GET", f"{PUBLIC}/all", caller=external).json()["value"]
    }
    assert {kind: found[f"Microsoft.Network/dnszones/{kind}"][f"{kind}Records"] for kind in written} == written


def test_the_image_registry_operator_finds_a_name_and_gets_the_keys_of_its_account(world: ArmWorld) -> None:
    registry = operator(world, "Image Registry Operator")
    ask = f"{SUBSCRIPTION}/providers/Microsoft.Storage/checkNameAvailability"
    account = f"{MANAGED}/providers/Microsoft.Storage/storageAccounts/imageregistryhc1"
    asked = {"name": "imageregistryhc1", "type": "Microsoft.Storage/storageAccounts"}

    free = world.call("POST", ask, asked, caller=registry).json()
    made = world.call("PUT", account, storage_account_body(), caller=registry)
    taken = world.call("POST", ask, asked, caller=registry).json()
    keys = world.call("POST", f"{account}/listKeys", **{"$expand": "kerb"}, caller=registry).json()["keys"]

    assert (free, made.status_code, taken["reason"]) == ({"nameAvailable": True}, 200, "AlreadyExists")
    assert world.call("POST", ask, {"name": "A_B"}, caller=registry).json()["reason"] == "AccountNameInvalid"
    assert [key["keyName"] for key in keys] == ["key1", "key2"]
    assert error(world.call("POST", f"{account}/listKeys", **{"$expand": "x"}))[0] == 501
    assert error(world.call("POST", ask, asked, caller=world.principal()))[0] == 403


def test_the_disk_driver_makes_copies_and_deletes_disks(world: ArmWorld) -> None:
    driver = operator(world, "Disk Storage Operator")
    snapshot = f"{MANAGED}/providers/Microsoft.Compute/snapshots/snapshot-1"
    copied = {"location": "eastus", "properties": {"creationData": {"createOption": "Copy", "sourceResourceId": DISK}}}

    assert world.call("PUT", DISK, disk_body(burstingEnabled=True), caller=driver).status_code == 200
    assert world.call("PUT", snapshot, copied, caller=driver).status_code == 200

    disk = world.call("GET", DISK, caller=driver).json()
    assert (disk["sku"], disk["zones"]) == ({"name": "Premium_LRS"}, ["1"])
    assert disk["properties"]["burstingEnabled"]
    assert (disk["properties"]["diskState"], disk["properties"]["provisioningState"]) == ("Unattached", "Succeeded")
    assert world.call("GET", snapshot, caller=driver).json()["properties"]["diskSizeGB"] == 4
    assert [world.call("DELETE", path, caller=driver).status_code for path in (snapshot, DISK, DISK)] == [200, 200, 204]


def test_the_file_driver_makes_and_deletes_shares(world: ArmWorld) -> None:
    driver = operator(world, "File Storage Operator")
    account = f"{MANAGED}/providers/Microsoft.Storage/storageAccounts/files"
    share = f"{account}/fileServices/default/shares/pvc-1"

    assert world.call("PUT", account, storage_account_body(), caller=driver).status_code == 200
    assert world.call("PUT", share, {"properties": {"shareQuota": 10}}, caller=driver).status_code == 201

    properties = world.call("GET", share, caller=driver).json()["properties"]
    assert (properties["shareQuota"], properties["enabledProtocols"]) == (10, "SMB")
    assert [world.call("DELETE", share, caller=driver).status_code for _ in range(2)] == [200, 204]


def test_the_cloud_controller_manager_lists_private_link_services(world: ArmWorld) -> None:
    manager = operator(world, "Cloud Controller Manager")

    assert world.call("GET", f"{NETWORK}/privateLinkServices", caller=manager).json() == {"value": []}


def test_the_cloud_controller_manager_asks_for_an_address_in_the_zones_of_the_region(world: ArmWorld) -> None:
    manager, address = operator(world, "Cloud Controller Manager"), f"{ADDRESS}-of-a-service"
    body = {**address_body(), "zones": ["1", "2", "3"]}

    assert [world.call("PUT", address, body, caller=manager).status_code for _ in range(2)] == [201, 200]
    assert world.call("GET", address).json()["zones"] == ["1", "2", "3"]


def test_the_provider_of_cluster_api_lists_the_sizes_of_its_region(world: ArmWorld) -> None:
    provider = operator(world, "Hosted Control Planes Cluster API Provider")
    skus, region = f"{SUBSCRIPTION}/providers/Microsoft.Compute/skus", {"$filter": "location eq 'westeurope'"}

    sizes = {size["name"]: size for size in world.call("GET", skus, **region, caller=provider).json()["value"]}

    assert sizes["Standard_D4s_v3"]["locations"] == ["westeurope"]
    assert {"name": "vCPUs", "value": "4"} in sizes["Standard_D4s_v3"]["capabilities"]
    assert error(world.call("GET", skus, **region, caller=world.principal()))[0] == 403
    assert error(world.call("GET", skus, caller=provider))[0] == 501


def test_the_network_controller_writes_an_address_of_an_interface_into_its_subnet(world: ArmWorld) -> None:
    controller = operator(world, "Network Operator")
    doubled = f"{NETWORK}/networkInterfaces//worker-0-nic"  # as it asks
    two = interface_body("10.0.0.9", "10.0.0.5")

    assert world.call("PUT", INTERFACE, interface_body()).status_code == 201
    assert world.call("PUT", doubled, two, caller=controller).status_code == 200

    found = world.call("GET", doubled, caller=controller).json()["properties"]["ipConfigurations"]
    assert [each["properties"]["privateIPAddress"] for each in found] == ["10.0.0.9", "10.0.0.5"]
    assert (found[0]["id"], found[0]["properties"]["primary"]) == (f"{INTERFACE}/ipConfigurations/pipConfig0", True)
    elsewhere = world.principal((_ROLE.format("Network Operator"), INTERFACE))
    assert error(world.call("PUT", INTERFACE, two, caller=elsewhere))[1] == "LinkedAuthorizationFailed"


def test_an_address_that_nobody_chose_is_the_next_of_the_subnet(world: ArmWorld) -> None:
    for number, address in enumerate(("10.0.0.4", "10.0.0.5")):
        made = world.call("PUT", f"{INTERFACE}-{number}", interface_body()).json()["properties"]["ipConfigurations"]
        assert made[0]["properties"]["privateIPAddress"] == address


def test_the_provider_of_cluster_api_makes_and_deletes_a_machine(world: ArmWorld) -> None:
    provider = operator(world, "Hosted Control Planes Cluster API Provider")
    identity = world.managed_identity("acr-pull")
    secret = {"adminUsername": "core", "adminPassword": "p", "customData": "aWduaXRpb24="}
    body = machine_body(osProfile=secret)
    pulls = {"type": "UserAssigned", "userAssignedIdentities": {str(identity.resource_id): {}}}

    assert world.call("PUT", INTERFACE, interface_body(), caller=provider).status_code == 201
    assert [world.call("PUT", MACHINE, body, caller=provider).status_code for _ in range(2)] == [201, 200]

    assert world.call("GET", MACHINE).json()["properties"]["osProfile"] == {"adminUsername": "core"}
    assert world.call("GET", INTERFACE).json()["properties"]["virtualMachine"] == {"id": MACHINE}
    refused = world.call("PUT", MACHINE, {**body, "identity": pulls}, caller=provider)
    assert error(refused)[1] == "LinkedAuthorizationFailed"
    assert world.call("DELETE", MACHINE, forceDeletion="true", caller=provider).status_code == 200
    assert world.call("DELETE", INTERFACE, caller=provider).status_code == 200


def test_the_disk_driver_attaches_disks_and_leaves_the_rest_of_a_machine_as_it_is(world: ArmWorld) -> None:
    driver = operator(world, "Disk Storage Operator")
    for path, body in ((INTERFACE, interface_body()), (MACHINE, machine_body(osProfile={})), (DISK, disk_body())):
        assert world.call("PUT", path, body).is_success
    before = world.call("GET", MACHINE).json()["properties"]

    assert world.call("PUT", MACHINE, attached(DISK.lower()), caller=driver).status_code == 200

    disk, machine = (world.call("GET", path, caller=driver).json() for path in (DISK, MACHINE))
    assert (disk["managedBy"], disk["properties"]["diskState"]) == (MACHINE, "Attached")
    assert [each["lun"] for each in machine["properties"]["storageProfile"]["dataDisks"]] == [0]
    assert world.call("PUT", MACHINE, attached(DISK, toBeDetached=True), caller=driver).status_code == 200
    assert world.call("GET", MACHINE).json()["properties"] == before
    assert "managedBy" not in world.call("GET", DISK).json()
    assert error(world.call("PUT", MACHINE, machine_body(), caller=driver))[1] == "LinkedAuthorizationFailed"
