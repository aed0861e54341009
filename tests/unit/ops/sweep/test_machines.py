"""What HyperShift left of hosted clusters that are gone is listed with its reason, and deleted by nobody here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from identity.azure.client import AzureClient
from identity.settings import Settings
from localcloud.testing.arm import GROUP, ArmWorld
from ops.sweep.left_over import delete
from ops.sweep.model import Swept
from ops.world.stacks import Contents
from tests.unit.ops.sweep.left_over_world import NONE, found, settings

__all__ = ["settings"]

_OWNED: Final = "sigs.k8s.io_cluster-api-provider-azure_cluster_{}"
_COMPUTE: Final = f"{GROUP}/providers/Microsoft.Compute"
_NETWORK: Final = f"{GROUP}/providers/Microsoft.Network"
_LIVING: Final = replace(NONE, contents={"dev": Contents(infra_ids=frozenset({"hc9-infra"}))})


def put(world: ArmWorld, type_name: str, name: str, **members: Any) -> str:
    """Something of HyperShift's, put there behind ARM's back; returns its id."""
    full_id = f"{GROUP}/providers/{type_name}/{name}"
    world.resources.put(
        {"id": full_id, "name": name, "type": type_name, "location": "eastus", "properties": {}, **members}
    )
    return full_id


def machine(world: ArmWorld, name: str, infra_id: str = "hc9-infra", lifecycle: str = "owned") -> str:
    return put(world, "Microsoft.Compute/virtualMachines", name, tags={_OWNED.format(infra_id): lifecycle})


@pytest.fixture
def left(world: ArmWorld) -> list[str]:
    """A machine of hc9-infra with all that belongs to it, beside what is of somebody else; the ids of the first."""
    vm = machine(world, "pool-a1")
    managed = "Microsoft.Network/loadBalancers"
    put(world, managed, "kubernetes")
    put(world, "Microsoft.Compute/virtualMachines", "jump-host")
    put(world, "Microsoft.Compute/disks", "jump-host_OSDisk")
    put(world, "Microsoft.Network/publicIPAddresses", "aks", tags={"k8s-azure-cluster-name": "kubernetes"})
    return [
        vm,
        put(world, "Microsoft.Compute/disks", "pool-a1_OSDisk"),
        put(world, "Microsoft.Compute/disks", "pvc-1", managedBy=vm),
        put(world, "Microsoft.Network/networkInterfaces", "pool-a1-nic"),
        put(world, managed, "hc9-infra"),
        put(world, managed, "hc9-infra-internal"),
        put(world, "Microsoft.Network/publicIPAddresses", "a", tags={"k8s-azure-cluster-name": "hc9-infra"}),
    ]


def test_a_machine_is_left_over_with_what_belongs_to_it(
    azure: AzureClient, settings: Settings, left: list[str]
) -> None:
    listed = found(azure, settings)

    assert [item.id for item in listed] == left
    assert [item.kind for item in listed] == [
        Swept.MACHINE,
        Swept.DISK,
        Swept.DISK,
        Swept.INTERFACE,
        Swept.LOAD_BALANCER,
        Swept.LOAD_BALANCER,
        Swept.PUBLIC_ADDRESS,
    ]
    assert {item.reason for item in listed} == {
        "it is of the cluster with the infrastructure id hc9-infra, which no stack has"
    }


def test_none_of_it_is_deleted(azure: AzureClient, settings: Settings, left: list[str]) -> None:
    for leftover in found(azure, settings):
        assert (
            leftover.not_ours == "HyperShift created it, and its cluster may be unknown to the stacks of this backend"
        )
        assert not leftover.is_deleted
        with pytest.raises(ValueError, match="never this program's"):
            delete(azure, leftover)


@pytest.mark.usefixtures("left")
def test_what_a_living_stacks_cluster_has_stays(azure: AzureClient, settings: Settings) -> None:
    assert found(azure, settings, _LIVING) == []


@pytest.mark.usefixtures("left")
def test_a_living_cluster_stays_whatever_the_user_says(azure: AzureClient, settings: Settings) -> None:
    assert found(azure, settings, _LIVING, ("hc9-infra",)) == []


def test_a_cluster_without_machines_is_known_by_its_id_alone(
    azure: AzureClient, world: ArmWorld, settings: Settings
) -> None:
    balancer = put(world, "Microsoft.Network/loadBalancers", "hc8-infra")

    assert found(azure, settings) == []
    assert [leftover.id for leftover in found(azure, settings, infra_ids=("hc8-infra",))] == [balancer]


def test_a_machine_that_is_shared_is_of_no_cluster(azure: AzureClient, world: ArmWorld, settings: Settings) -> None:
    machine(world, "shared-1", lifecycle="shared")

    assert found(azure, settings) == []
