"""What HyperShift left in Azure of hosted clusters that are gone: machines and disks, load balancers and addresses.

It lets go of a machine that it cannot delete for ten minutes, for instance with certificates that have ended
(openshift/hypershift pull request 8296). All of it is HyperShift's, and a cluster of somebody else's looks the same, so
it is listed and never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from identity import resource_types
from identity.access.azure_client import AzureClient, AzureObject
from ops.sweep.model import LeftOver, Swept

# kubernetes-sigs/cluster-api-provider-azure api/v1beta1/tags.go, `ClusterTagKey`: of machines and, since some release,
# of their interfaces. HyperShift names its Cluster by the infrastructure id (`CAPICluster` in
# hypershift-operator/controllers/manifests/controlplaneoperator/manifests.go).
_MACHINES_TAG: Final = "sigs.k8s.io_cluster-api-provider-azure_cluster_"
_OWNED: Final = "owned"
# cloud-provider-azure pkg/consts/consts.go, of addresses; its `--cluster-name` is the infrastructure id, and so is the
# name of its public load balancer (HyperShift v2/cloud_controller_manager/azure/deployment.go).
_ADDRESS_TAG: Final = "k8s-azure-cluster-name"
_INTERNAL: Final = "-internal"
_NOT_OURS: Final = "HyperShift made it, and its cluster may be one that no stack of this backend knows"


def find(
    azure: AzureClient, subscription: str, is_living: Callable[[str], bool], infra_ids: Collection[str]
) -> Iterator[LeftOver]:
    """Those in a subscription (its ARM id) of clusters that no stack has; one list for each type.

    Args:
        is_living: whether a stack has a hosted cluster with this infrastructure id.
        infra_ids: of clusters that are gone, as the user knows them; others are known by their machines.

    ARM lists what the deployer may read, and refuses nothing. Raises AzureRefusedError.
    """

    def listed(kind: Swept) -> list[AzureObject]:
        return azure.resources(
            f"{subscription}/resources", resource_types.RESOURCES_LIST_API, f"resourceType eq '{_TYPES[kind]}'"
        )

    machines = listed(Swept.MACHINE)
    owners = {each["id"].lower(): infra_id for each in machines if (infra_id := _tagged(each))}
    gone = {each for each in (*owners.values(), *infra_ids) if not is_living(each)}
    if not gone:
        return
    by_name = {each["name"].lower(): owners.get(each["id"].lower()) for each in machines}

    def of_machine(each: AzureObject) -> str | None:
        """Of a disk or interface: by its tag, by the machine that has it, or by the name that its machine gave it."""
        name = each["name"].lower()
        stem = name.removesuffix("_osdisk") if name.endswith("_osdisk") else name.partition("-nic")[0]
        return _tagged(each) or owners.get(str(each.get("managedBy", "")).lower()) or by_name.get(stem)

    known: dict[Swept, Callable[[AzureObject], str | None]] = {
        Swept.MACHINE: _tagged,
        Swept.DISK: of_machine,
        Swept.INTERFACE: of_machine,
        Swept.LOAD_BALANCER: lambda each: str(each["name"]).removesuffix(_INTERNAL),
        Swept.PUBLIC_ADDRESS: lambda each: (each.get("tags") or {}).get(_ADDRESS_TAG) or each["name"],
    }
    for kind, infra_id_of in known.items():
        for each in machines if kind == Swept.MACHINE else listed(kind):
            if (infra_id := infra_id_of(each)) in gone:
                reason = f"it is of the cluster with the infrastructure id {infra_id}, which no stack has"
                yield LeftOver(kind, each["id"], each["name"], reason, _NOT_OURS)


_TYPES: Final = {
    Swept.MACHINE: "Microsoft.Compute/virtualMachines",
    Swept.DISK: "Microsoft.Compute/disks",
    Swept.INTERFACE: "Microsoft.Network/networkInterfaces",
    Swept.LOAD_BALANCER: "Microsoft.Network/loadBalancers",
    Swept.PUBLIC_ADDRESS: "Microsoft.Network/publicIPAddresses",
}


def _tagged(resource: AzureObject) -> str | None:
    """The infrastructure id in a tag of the machines'."""
    for name, value in (resource.get("tags") or {}).items():
        if name.startswith(_MACHINES_TAG) and value == _OWNED:
            return str(name.removeprefix(_MACHINES_TAG))
    return None
