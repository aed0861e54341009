"""The rules of the access to the management cluster; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.login_kinds import LOGIN_KINDS
from identity.settings.schema.access import AccessSettings, CreationSettings
from identity.settings.schema.base import apply
from identity.settings.schema.model import ManagementClusterSettings, Settings
from identity.settings.schema.problems import ReportedPlace, to_remove

# The keys that describe a login of any kind.
_LOGIN_ATTRIBUTES: Final = frozenset().union(*(row.needs | row.takes for row in LOGIN_KINDS.values()))


def cluster_is_reached_in_one_way(settings: Settings, root: ReportedPlace) -> None:
    """The kubeconfig is the user's own or the stack's; only the former has a context."""
    cluster = settings.management_cluster
    if cluster is None:
        return
    place = root / "managementCluster" / "kubeconfig"
    if cluster.kubeconfig is not None and "access" in cluster.model_fields_set:
        accepted = "nothing with managementCluster.access, with which the stack makes a kubeconfig of its own"
        place.refuse(cluster.kubeconfig, rule="kubeconfig-beside-access", accepted=accepted)
    if cluster.context is not None and cluster.kubeconfig is None:
        at = root / "managementCluster" / "context"
        fix = f"{at.to_remove()}, or {place.to_set('<path>')}"
        accepted = "nothing without managementCluster.kubeconfig: it is a context of that file"
        at.refuse(cluster.context, rule="context-without-kubeconfig", accepted=accepted, fix=fix)


def login_is_described(settings: Settings, root: ReportedPlace) -> None:
    """The login has its required keys, and no others than it accepts."""
    access = settings.management_cluster.access if settings.management_cluster else None
    if access is None:
        return
    place = root / "managementCluster" / "access"
    row = LOGIN_KINDS[access.login]
    for name, field in AccessSettings.model_fields.items():
        if name not in _LOGIN_ATTRIBUTES:
            continue
        at, value = place / str(field.alias), getattr(access, name)
        if value is None and name in row.needs:
            blank = "<uuid>" if name == "client_id" else "<path>"
            accepted = f"a value with login: {access.login}"
            at.refuse(None, rule="login-key-missing", accepted=accepted, fix=at.to_set(blank))
        if value is not None and name not in row.needs | row.takes:
            at.refuse(value, rule="login-key-unused", accepted=f"nothing with login: {access.login}")


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
    if cluster.kubeconfig is not None:
        accepted = "nothing with managementCluster.create: AKS assigns one when it creates the cluster"
        (place / "kubeconfig").refuse(cluster.kubeconfig, rule="kubeconfig-of-created-cluster", accepted=accepted)


def _no_administrator(cluster: ManagementClusterSettings, place: ReportedPlace) -> None:
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
