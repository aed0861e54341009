"""The rules of a management cluster that the stack makes; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.settings.schema.creation import CreationSettings
from identity.settings.schema.invalid import apply
from identity.settings.schema.model import ManagementClusterSettings, Settings
from identity.settings.schema.problems import ReportedPlace, to_remove

# learn.microsoft.com/azure/aks/configure-azure-cni: the subnet is 10.224.0.0/16, of which Azure keeps five.
_ADDRESSES: Final = 2**16 - 5


def validate_creation(settings: Settings, root: ReportedPlace) -> None:
    """Apply every rule to the cluster that the stack makes, if it makes one."""
    cluster, place = settings.management_cluster, root / "managementCluster"
    if cluster is None or cluster.create is None:
        return
    apply((_policy_engine_fits, _every_pod_has_an_address, _one_authority), cluster.create, place / "create")
    apply((_no_kubeconfig, _no_administrator), cluster, place)
    apply((_stack_is_the_vaults,), settings, place / "create")


def _one_authority(create: CreationSettings, place: ReportedPlace) -> None:
    """Azure RBAC, or groups of administrators: AKS accepts both at once, and then it is unclear which one decides."""
    by_roles, groups = create.azure_rbac, create.admin_group_object_ids
    roles_at, groups_at = place / "azureRBAC", place / "adminGroupObjectIDs"
    if by_roles and groups:
        groups_at.refuse(
            groups,
            rule="two-cluster-authorities",
            accepted="nothing with managementCluster.create.azureRBAC, with which role assignments alone decide",
            fix=f"{groups_at.to_remove()}, or {roles_at.to_remove()}",
        )
    if not by_roles and not groups:
        groups_at.refuse(
            None,
            rule="no-cluster-authority",
            accepted="object ids of the Entra ID groups that administer the cluster, or azureRBAC: true instead",
            fix=f"{(groups_at / 0).to_set('<uuid>')}, or {roles_at.to_set('true')}",
        )


def _policy_engine_fits(create: CreationSettings, place: ReportedPlace) -> None:
    """AKS itself would refuse a policy engine of another plugin."""
    policy, plugin = place / "network" / "policy", place / "network" / "plugin"
    if create.network.plugin == "kubenet" and create.network.policy == "azure":
        policy.refuse(
            create.network.policy,
            rule="network-policy-of-kubenet",
            accepted="calico or none with the network plugin kubenet",
            fix=f"{policy.to_set('calico')}, or {plugin.to_remove()}",
        )


def _every_pod_has_an_address(create: CreationSettings, place: ReportedPlace) -> None:
    pool, at = create.node_pool, place / "nodePool"
    if create.network.plugin == "azure" and pool.count * (pool.max_pods + 1) > _ADDRESSES:
        most = _ADDRESSES // pool.count - 1
        (at / "maxPods").refuse(
            pool.max_pods,
            rule="node-pool-addresses",
            accepted=f"at most {most} with {pool.count} machines: each machine and each of its pods has an address, "
            f"and the subnet that AKS makes has {_ADDRESSES:,}",
            fix=f"{(at / 'maxPods').to_set(str(most))}, or {(at / 'count').to_set('<number>')} with fewer machines",
        )


def _no_kubeconfig(cluster: ManagementClusterSettings, place: ReportedPlace) -> None:
    """A cluster that does not exist yet has none."""
    if cluster.kubeconfig is not None:
        accepted = "nothing with managementCluster.create: AKS assigns one when it creates the cluster"
        (place / "kubeconfig").refuse(cluster.kubeconfig, rule="kubeconfig-of-created-cluster", accepted=accepted)


def _no_administrator(cluster: ManagementClusterSettings, place: ReportedPlace) -> None:
    """A cluster without local accounts has no static credential."""
    if cluster.access.admin:
        accepted = "false with managementCluster.create: the cluster has no local accounts"
        (place / "access" / "admin").refuse(True, rule="admin-of-created-cluster", accepted=accepted)


def _stack_is_the_vaults(settings: Settings, place: ReportedPlace) -> None:
    """The add-on's identity reads the vault, so both are made by the stack that others share."""
    if settings.shared_stack is not None:
        place.refuse(
            {},
            rule="created-cluster-in-sharing-stack",
            accepted="nothing with sharedStack: the stack that has the vault makes the cluster whose add-on reads it",
            fix=f"{place.to_remove()}, or {to_remove(('sharedStack',))}",
        )
