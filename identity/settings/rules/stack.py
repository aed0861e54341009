"""The rules of a stack and of the access to its management cluster.

A rule ends where it meets a value that was already refused by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from identity.catalogue import CONTROL_PLANE
from identity.clouds import LOCAL_CLOUD, LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID, LocalEnvironment
from identity.credentials.schedule import least_renew_before_days
from identity.login_kinds import LOGIN_KINDS
from identity.naming import dashed
from identity.settings.rules.authentication import applied_clusters_sign_in_in_one_way
from identity.settings.rules.hosted_cluster import validate_cluster
from identity.settings.rules.hosted_cluster_parts import used_once_is_switched_on_once
from identity.settings.rules.infrastructure import (
    created_groups_are_the_clusters_own,
    created_issuers_have_names_of_their_own,
)
from identity.settings.schema.access import AccessSettings, CreationSettings
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.model import ManagementClusterSettings, Settings
from identity.settings.schema.problems import enumerate_words
from identity.settings.schema.schema_node import ReportedPlace

# The keys that describe a login of any kind.
_LOGIN_ATTRIBUTES: Final = frozenset().union(*(row.needs | row.takes for row in LOGIN_KINDS.values()))


def cluster_is_reached_in_one_way(settings: Settings, root: ReportedPlace) -> None:
    """The kubeconfig is the user's own or the stack's; only the former has a context."""
    cluster = settings.management_cluster
    if cluster is None:
        return
    place = root / "managementCluster" / "kubeconfig"
    if cluster.kubeconfig is not None and "access" in cluster.model_fields_set:
        place.refuse("kubeconfig-beside-access")
    if cluster.context is not None and cluster.kubeconfig is None:
        (root / "managementCluster" / "context").refuse("context-without-kubeconfig", otherwise=place.to_set())


def login_is_described(settings: Settings, root: ReportedPlace) -> None:
    """The login has its required keys, and no others than it accepts."""
    access = settings.management_cluster.access if settings.management_cluster else None
    if access is None:
        return
    row = LOGIN_KINDS[access.login]
    for name, field in AccessSettings.model_fields.items():
        if name not in _LOGIN_ATTRIBUTES:
            continue
        at = root / "managementCluster" / "access" / str(field.alias)
        if at.value is None and name in row.needs:
            at.require("login-key-missing", login=access.login)
        if at.value is not None and name not in row.needs | row.takes:
            at.refuse("login-key-unused", login=access.login)


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
        groups_at.refuse("two-cluster-authorities", otherwise=roles_at.to_remove())
    if not by_roles and not groups:
        groups_at.refuse_value(
            None,
            rule="no-cluster-authority",
            accepted="object ids of the Entra ID groups that administer the cluster, or azureRBAC: true instead",
            fix=f"{(groups_at / 0).to_set()}, or {roles_at.to_set('true')}",
        )


def _policy_engine_fits(create: CreationSettings, place: ReportedPlace) -> None:
    """AKS itself would refuse a policy engine of another plugin."""
    policy, plugin = place / "network" / "policy", place / "network" / "plugin"
    if create.network.plugin == "kubenet" and create.network.policy == "azure":
        policy.require("network-policy-of-kubenet", "calico", otherwise=plugin.to_remove())


def _every_pod_has_an_address(create: CreationSettings, place: ReportedPlace) -> None:
    pool, at = create.node_pool, place / "nodePool"
    if create.network.plugin == "azure" and pool.count * (pool.max_pods + 1) > _ADDRESSES:
        most = _ADDRESSES // pool.count - 1
        (at / "maxPods").require(
            "node-pool-addresses",
            str(most),
            otherwise=f"{(at / 'count').to_set('<number>')} with fewer machines",
            most=most,
            count=pool.count,
            addresses=f"{_ADDRESSES:,}",
        )


def _no_kubeconfig(cluster: ManagementClusterSettings, place: ReportedPlace) -> None:
    if cluster.kubeconfig is not None:
        (place / "kubeconfig").refuse("kubeconfig-of-created-cluster")


def _no_administrator(cluster: ManagementClusterSettings, place: ReportedPlace) -> None:
    if cluster.access.admin:
        (place / "access" / "admin").refuse("admin-of-created-cluster")


def _stack_is_the_vaults(settings: Settings, place: ReportedPlace) -> None:
    """The add-on's identity reads the vault, so both are made by the stack that others share."""
    if settings.shared_stack is not None:
        place.refuse("created-cluster-in-sharing-stack", otherwise=place.at(("sharedStack",)).to_remove())


def validate_settings(settings: Settings, local: LocalEnvironment | None, root: ReportedPlace) -> None:
    """Apply every rule; `settings` may lack what was refused."""
    root = replace(root, settings=settings)
    apply(_RULES, settings, root)
    apply((_kubeconfig_is_the_local_clouds,), settings, local, root)
    with unless_refused():
        for index, cluster in enumerate(settings.hosted_clusters):
            validate_cluster(settings, cluster, root / "hostedClusters" / index)


def _reserved_ids_fit_cloud(settings: Settings, root: ReportedPlace) -> None:
    is_local = settings.cloud.name == LOCAL_CLOUD
    for key, value, reserved in (
        ("tenantId", settings.tenant_id, LOCAL_TENANT_ID),
        ("subscriptionId", settings.subscription_id, LOCAL_SUBSCRIPTION_ID),
    ):
        at = root / key
        with unless_refused():
            if is_local and value != reserved:
                at.require(
                    "local-cloud-id-required",
                    reserved,
                    otherwise=f"name a real cloud with {(root / 'cloud').to_set('<cloud>')}",
                    reserved=reserved,
                )
            if not is_local and value == reserved:
                at.require(
                    "local-cloud-id-reserved",
                    otherwise=f"use the local cloud with {(root / 'cloud').to_set(LOCAL_CLOUD)}",
                )


def _local_state_is_on_this_machine(settings: Settings, root: ReportedPlace) -> None:
    if settings.cloud.name == LOCAL_CLOUD and settings.backend is not None:
        (root / "backend").refuse("backend-of-local-cloud")


def _kubeconfig_is_the_local_clouds(settings: Settings, local: LocalEnvironment | None, root: ReportedPlace) -> None:
    cluster = settings.management_cluster
    if settings.cloud.name == LOCAL_CLOUD and local and cluster and cluster.kubeconfig not in (None, local.kubeconfig):
        (root / "managementCluster" / "kubeconfig").refuse("kubeconfig-of-local-cloud")


def _failed_renewals_have_time(settings: Settings, root: ReportedPlace) -> None:
    lifetime, before = settings.credentials.lifetime_days, settings.credentials.renew_before_days
    is_shorter = before < lifetime  # first: it ends the rule if one of them was refused
    least = least_renew_before_days(lifetime)
    if not is_shorter or before < least:
        most = lifetime - 1
        days, value = (f"{least} to {most}", f"<{least}-{most}>") if least < most else (f"{least}", f"{least}")
        (root / "credentials" / "renewBeforeDays").require(
            "renewal-date", value, otherwise="change credentials.lifetimeDays", days=days, lifetime=lifetime
        )


def _gate_has_time_to_settle(settings: Settings, root: ReportedPlace) -> None:
    propagation = settings.credentials.propagation
    if propagation.timeout_seconds <= propagation.settle_seconds:
        (root / "credentials" / "propagation" / "timeoutSeconds").require("propagation-timeout-too-short", "<seconds>")


def _vault_and_key_vault_user_are_here_or_shared(settings: Settings, root: ReportedPlace) -> None:
    shared, name_vault = root / "sharedStack", (root / "vault" / "name").to_set()
    if settings.shared_stack is None:
        if settings.vault is None and settings.uses_vault:
            share = shared.to_set("<organization>/<project>/<stack>")
            (root / "vault").refuse("vault-missing", name_vault, otherwise=share)
        if settings.vault is None and not settings.uses_vault and "key_vault_user" in settings.model_fields_set:
            (root / "keyVaultUser").refuse("key-vault-user-without-vault", otherwise=name_vault)
        return
    for key, is_set in (
        ("vault", settings.vault is not None),
        ("keyVaultUser", "key_vault_user" in settings.model_fields_set),
        ("keyVaultUserScope", settings.key_vault_user_scope != "vault"),
    ):
        if is_set:
            (root / key).refuse("vault-of-shared-stack", otherwise=shared.to_remove())


def _vault_lists_have_an_effect(settings: Settings, root: ReportedPlace) -> None:
    vault, at = settings.vault, root / "vault"
    if vault is None:
        return
    if not vault.public_network_access:
        overruling = "publicNetworkAccess: false, which leaves private endpoints only"
        fix = (at / "publicNetworkAccess").to_set("true")
    elif vault.default_action == "Allow":
        overruling = "defaultAction: Allow, which lets every network in"
        fix = (at / "defaultAction").to_set("Deny")
    else:
        return
    for networks in (at / "allowedIpRanges", at / "allowedSubnetIds"):
        with unless_refused():
            if networks.value:
                networks.refuse("vault-networks-without-effect", otherwise=fix, overruling=overruling)


def _vault_is_reachable(settings: Settings, root: ReportedPlace) -> None:
    vault, at = settings.vault, root / "vault"
    if vault is None or not vault.public_network_access or vault.default_action == "Allow":
        return
    if not vault.allowed_ip_ranges and not vault.allowed_subnet_ids:
        ranges, subnets, action = at / "allowedIpRanges", at / "allowedSubnetIds", at / "defaultAction"
        action.refuse(
            "vault-admits-nobody",
            f"{(ranges / 0).to_set('<range of the deployer>')} and {(subnets / 0).to_set('<subnet of the nodes>')}",
            otherwise=f"{action.to_set('Allow')}, with which roles alone decide who reads a secret",
        )


def _key_vault_user_is_described_by_its_source(settings: Settings, root: ReportedPlace) -> None:
    if not settings.has_key_vault_user:
        return
    source = settings.key_vault_user.source
    required = {"aks-addon": (), "existing": ("clientId", "objectId"), "created": ("name",)}[source]
    for key in ("clientId", "objectId", "name"):
        place = root / "keyVaultUser" / key
        if key in required and place.value is None:
            place.require("key-vault-user-key-missing")
        if key not in required and place.value is not None:
            place.refuse("key-vault-user-key-unused", otherwise="choose another keyVaultUser.source", source=source)


def _creating(settings: Settings, root: ReportedPlace) -> Iterator[str]:
    """The place that makes the stack create objects in the management cluster, if there is one."""
    if settings.makes_cluster_sides:
        yield "clusterSide: stack"
        return
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            if cluster.hosted_cluster is not None:
                yield str(root / "hostedClusters" / index / "hostedCluster")
                return


def _management_cluster_is_named_where_needed(settings: Settings, root: ReportedPlace) -> None:
    if settings.management_cluster is not None:
        return
    from_addon = settings.has_key_vault_user and settings.key_vault_user.source == "aks-addon"
    reasons = [
        *(["keyVaultUser.source: aks-addon reads its add-on's identity"] if from_addon else []),
        *(f"{place} creates objects in it" for place in _creating(settings, root)),
    ]
    if reasons:
        place = root / "managementCluster"
        set_both = f"{(place / 'resourceGroup').to_set()} and {(place / 'name').to_set()}"
        place.refuse("management-cluster-missing", set_both, reasons=enumerate_words(reasons))


def _metadata_is_blocked_in_own_namespaces(settings: Settings, root: ReportedPlace) -> None:
    is_hypershifts = bool(settings.hosted_clusters) and not settings.makes_cluster_sides
    if settings.block_instance_metadata and (is_hypershifts or settings.cluster_side == "hypershift"):
        (root / "blockInstanceMetadata").refuse(
            "metadata-block-without-effect",
            otherwise=(root / "clusterSide").to_set("stack") if settings.cluster_side == "hypershift" else "",
        )


def _probe_has_an_image_where_needed(settings: Settings, root: ReportedPlace) -> None:
    if settings.makes_cluster_sides and settings.probe.image is None:
        image = root / "probe" / "image"
        image.refuse(
            "probe-image-missing",
            f"{image.to_set()}, which `make probe-image REGISTRY=<registry>` pushes",
            otherwise=(root / "clusterSide").to_set("hypershift"),
        )


def _clusters_have_names_of_their_own(settings: Settings, root: ReportedPlace) -> None:
    names: dict[str, object] = {}
    infra_ids: dict[str, object] = {}
    for index, cluster in enumerate(settings.hosted_clusters):
        place = root / "hostedClusters" / index
        with unless_refused():
            if (place / "name").require_own("duplicate-cluster-name", names, dashed(cluster.name)):
                continue  # whatever follows from the name is equal as well
            (place / "infraID").require_own("duplicate-infra-id", infra_ids, cluster.infra_id)


def _secrets_have_names_of_their_own(settings: Settings, root: ReportedPlace) -> None:
    owners: dict[str, object] = {}
    names: set[str] = set()
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            name = dashed(cluster.name)
            if name in names:
                continue  # refused for its name
            names.add(name)
        for row in CONTROL_PLANE:
            with unless_refused():
                identity = cluster.identity(row)
                place = root / "hostedClusters" / index / "identities" / row.field / "secretName"
                if identity.enabled:
                    # Key Vault ignores the case of letters.
                    place.require_own("duplicate-secret-name", owners, identity.secret_name.lower())


_RULES: Final[tuple[Callable[[Settings, ReportedPlace], None], ...]] = (
    _reserved_ids_fit_cloud,
    _local_state_is_on_this_machine,
    _vault_and_key_vault_user_are_here_or_shared,
    _vault_lists_have_an_effect,
    _vault_is_reachable,
    _key_vault_user_is_described_by_its_source,
    _management_cluster_is_named_where_needed,
    cluster_is_reached_in_one_way,
    login_is_described,
    validate_creation,
    _failed_renewals_have_time,
    _gate_has_time_to_settle,
    _metadata_is_blocked_in_own_namespaces,
    _probe_has_an_image_where_needed,
    _clusters_have_names_of_their_own,
    created_issuers_have_names_of_their_own,
    _secrets_have_names_of_their_own,
    created_groups_are_the_clusters_own,
    used_once_is_switched_on_once,
    applied_clusters_sign_in_in_one_way,
)
