"""HyperShift's remains of deleted hosted clusters in Azure: machines and disks, load balancers and addresses.

HyperShift gives up a machine that it cannot delete for ten minutes, for instance with expired certificates
(openshift/hypershift pull request 8296). A cluster of others looks the same, so these are listed and never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from ops.sweep.model import LeftOver, Swept

# kubernetes-sigs/cluster-api-provider-azure api/v1beta1/tags.go, `ClusterTagKey`: on machines and, in newer releases,
# on their interfaces. HyperShift names its Cluster by the infrastructure id (`CAPICluster` in
# hypershift-operator/controllers/manifests/controlplaneoperator/manifests.go).
_MACHINES_TAG: Final = "sigs.k8s.io_cluster-api-provider-azure_cluster_"
_OWNED: Final = "owned"
# cloud-provider-azure pkg/consts/consts.go, on addresses; its `--cluster-name` is the infrastructure id, and so is the
# name of its public load balancer (HyperShift v2/cloud_controller_manager/azure/deployment.go).
_ADDRESS_TAG: Final = "k8s-azure-cluster-name"
_INTERNAL: Final = "-internal"
_NOT_OURS: Final = "HyperShift created it, and its cluster may be unknown to the stacks of this backend"


def find(
    azure: AzureClient, subscription: str, is_living: Callable[[str], bool], infra_ids: Collection[str]
) -> Iterator[LeftOver]:
    """The remains in a subscription (its ARM id) of clusters that no stack has; one list for each type.

    Args:
        is_living: whether a stack has a hosted cluster with this infrastructure id.
        infra_ids: of deleted clusters, from the user; others are found by their machines.

    ARM lists the resources that the deployer may read. Raises AzureRefusedError.
    """

    def listed(kind: Swept) -> list[AzureObject]:
        return azure.resources(
            f"{subscription}/resources", resource_types.RESOURCES_LIST_API, f"resourceType eq '{_TYPES[kind]}'"
        )

    machines = listed(Swept.MACHINE)
    owners = {machine["id"].lower(): infra_id for machine in machines if (infra_id := _tagged(machine))}
    deleted = {infra_id for infra_id in (*owners.values(), *infra_ids) if not is_living(infra_id)}
    if not deleted:
        return
    by_name = {machine["name"].lower(): owners.get(machine["id"].lower()) for machine in machines}

    def of_machine(resource: AzureObject) -> str | None:
        """The infrastructure id of a disk or interface, by its tag, by its machine, or by its name."""
        name = resource["name"].lower()
        stem = name.removesuffix("_osdisk") if name.endswith("_osdisk") else name.partition("-nic")[0]
        return _tagged(resource) or owners.get(str(resource.get("managedBy", "")).lower()) or by_name.get(stem)

    finders: dict[Swept, Callable[[AzureObject], str | None]] = {
        Swept.MACHINE: _tagged,
        Swept.DISK: of_machine,
        Swept.INTERFACE: of_machine,
        Swept.LOAD_BALANCER: lambda balancer: str(balancer["name"]).removesuffix(_INTERNAL),
        Swept.PUBLIC_ADDRESS: lambda address: (address.get("tags") or {}).get(_ADDRESS_TAG) or address["name"],
    }
    for kind, infra_id_of in finders.items():
        for candidate in machines if kind == Swept.MACHINE else listed(kind):
            if (infra_id := infra_id_of(candidate)) in deleted:
                reason = f"it is of the cluster with the infrastructure id {infra_id}, which no stack has"
                yield LeftOver(kind, candidate["id"], candidate["name"], reason, _NOT_OURS)


_TYPES: Final = {
    Swept.MACHINE: "Microsoft.Compute/virtualMachines",
    Swept.DISK: "Microsoft.Compute/disks",
    Swept.INTERFACE: "Microsoft.Network/networkInterfaces",
    Swept.LOAD_BALANCER: "Microsoft.Network/loadBalancers",
    Swept.PUBLIC_ADDRESS: "Microsoft.Network/publicIPAddresses",
}


def _tagged(resource: AzureObject) -> str | None:
    """The infrastructure id in the tag of machines."""
    for name, value in (resource.get("tags") or {}).items():
        if name.startswith(_MACHINES_TAG) and value == _OWNED:
            return str(name.removeprefix(_MACHINES_TAG))
    return None
