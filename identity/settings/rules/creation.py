"""The rules of a management cluster that the stack makes; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.settings.schema.creation import CreationSettings
from identity.settings.schema.invalid import apply
from identity.settings.schema.model import ManagementClusterSettings, Settings
from identity.settings.schema.problems import Place, ProblemReport, to_remove, to_set

_PLACE: Final = ("managementCluster", "create")
_NETWORK: Final = (*_PLACE, "network")
# learn.microsoft.com/azure/aks/configure-azure-cni: the subnet is 10.224.0.0/16, of which Azure keeps five.
_ADDRESSES: Final = 2**16 - 5
_RBAC: Final = (*_PLACE, "azureRBAC")
_GROUPS: Final = (*_PLACE, "adminGroupObjectIDs")


def created_cluster_has_one_authority(settings: Settings, report: ProblemReport) -> None:
    """Azure RBAC, or groups of administrators: AKS accepts both at once, and then it is unclear which one decides."""
    cluster = settings.management_cluster
    if cluster is None or cluster.create is None:
        return
    by_roles, groups = cluster.create.azure_rbac, cluster.create.admin_group_object_ids
    if by_roles and groups:
        accepted = "nothing with managementCluster.create.azureRBAC, by which role assignments decide alone"
        report.refuse(
            _GROUPS,
            groups,
            rule="two-cluster-authorities",
            accepted=accepted,
            fix=f"{to_remove(_GROUPS)}, or {to_remove(_RBAC)}",
        )
    if not by_roles and not groups:
        accepted = "object ids of the Entra ID groups that administer the cluster, or azureRBAC: true instead"
        fix = f"{to_set((*_GROUPS, 0), '<uuid>')}, or {to_set(_RBAC, 'true')}"
        report.refuse(_GROUPS, None, rule="no-cluster-authority", accepted=accepted, fix=fix)


def created_cluster_has_a_network_that_works(settings: Settings, report: ProblemReport) -> None:
    """AKS itself would refuse a policy engine of another plugin, and more pods than there are addresses."""
    cluster = settings.management_cluster
    if cluster is None or cluster.create is None:
        return
    apply((_policy_engine_fits, _every_pod_has_an_address), cluster.create, report)


def _policy_engine_fits(create: CreationSettings, report: ProblemReport) -> None:
    network = create.network
    if network.plugin == "kubenet" and network.policy == "azure":
        policy, plugin = (*_NETWORK, "policy"), (*_NETWORK, "plugin")
        report.refuse(
            policy,
            network.policy,
            rule="network-policy-of-kubenet",
            accepted="calico or none with the network plugin kubenet",
            fix=f"{to_set(policy, 'calico')}, or {to_remove(plugin)}",
        )


def _every_pod_has_an_address(create: CreationSettings, report: ProblemReport) -> None:
    pool = create.node_pool
    if create.network.plugin == "azure" and pool.count * (pool.max_pods + 1) > _ADDRESSES:
        at = (*_PLACE, "nodePool", "maxPods")
        most = _ADDRESSES // pool.count - 1
        report.refuse(
            at,
            pool.max_pods,
            rule="node-pool-addresses",
            accepted=f"at most {most} with {pool.count} machines: each machine and each of its pods has an address, "
            f"and the subnet that AKS makes has {_ADDRESSES:,}",
            fix=f"{to_set(at, str(most))}, or {to_set((*_PLACE, 'nodePool', 'count'), '<number>')} with fewer machines",
        )


def created_cluster_is_reached_through_entra(settings: Settings, report: ProblemReport) -> None:
    """A cluster that does not exist yet has no kubeconfig, and one without local accounts no static credential."""
    cluster = settings.management_cluster
    if cluster is None or cluster.create is None:
        return
    apply((_no_kubeconfig, _no_administrator), cluster, report)


def _no_kubeconfig(cluster: ManagementClusterSettings, report: ProblemReport) -> None:
    if cluster.kubeconfig is not None:
        place: Place = ("managementCluster", "kubeconfig")
        accepted = "nothing with managementCluster.create: AKS gives one out when the cluster is there"
        report.refuse(place, cluster.kubeconfig, rule="kubeconfig-of-created-cluster", accepted=accepted)


def _no_administrator(cluster: ManagementClusterSettings, report: ProblemReport) -> None:
    if cluster.access.admin:
        place: Place = ("managementCluster", "access", "admin")
        accepted = "false with managementCluster.create: the cluster has no local accounts"
        report.refuse(place, True, rule="admin-of-created-cluster", accepted=accepted)


def created_cluster_belongs_to_the_vaults_stack(settings: Settings, report: ProblemReport) -> None:
    """The add-on's identity reads the vault, so both are made by the stack that others share."""
    cluster = settings.management_cluster
    if settings.shared_stack is not None and cluster is not None and cluster.create is not None:
        accepted = "nothing with sharedStack: the stack that has the vault makes the cluster whose add-on reads it"
        report.refuse(
            _PLACE,
            {},
            rule="created-cluster-in-sharing-stack",
            accepted=accepted,
            fix=f"{to_remove(_PLACE)}, or {to_remove(('sharedStack',))}",
        )
