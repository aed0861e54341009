"""The rules of a stack. A rule ends where it meets a value that was already refused by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from identity.catalogue import CONTROL_PLANE
from identity.clouds import LOCAL_CLOUD, LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID, LocalEnvironment
from identity.credentials.renewal_date import least_renew_before_days
from identity.naming import dashed
from identity.settings.rules.access import cluster_is_reached_in_one_way, login_is_described
from identity.settings.rules.authentication import applied_clusters_sign_in_in_one_way
from identity.settings.rules.creation import (
    created_cluster_belongs_to_the_vaults_stack,
    created_cluster_has_a_network_that_works,
    created_cluster_has_one_authority,
    created_cluster_is_reached_through_entra,
)
from identity.settings.rules.hosted_cluster import validate_cluster
from identity.settings.rules.infrastructure import created_groups_are_the_clusters_own
from identity.settings.rules.issuer import created_issuers_have_names_of_their_own
from identity.settings.rules.monitoring import (
    audit_log_goes_somewhere,
    expiry_alerts_come_after_the_renewal,
    expiry_alerts_tell_somebody,
    monitored_vault_is_the_stacks_own,
)
from identity.settings.rules.optional_identities import used_once_is_switched_on_once
from identity.settings.schema.invalid import apply, unless_refused
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import Place, ProblemReport, enumerate_words, path_of, to_remove, to_set


def validate_settings(settings: Settings, local: LocalEnvironment | None, report: ProblemReport) -> None:
    """Apply every rule; `settings` may hold `INVALID` wherever a value was."""
    apply(_RULES, settings, report)
    apply((_kubeconfig_is_the_local_clouds,), settings, local, report)
    with unless_refused():
        for index, cluster in enumerate(settings.hosted_clusters):
            validate_cluster(settings, cluster, ("hostedClusters", index), report)


def _reserved_ids_fit_cloud(settings: Settings, report: ProblemReport) -> None:
    is_local = settings.cloud.name == LOCAL_CLOUD
    for key, value, reserved in (
        ("tenantId", settings.tenant_id, LOCAL_TENANT_ID),
        ("subscriptionId", settings.subscription_id, LOCAL_SUBSCRIPTION_ID),
    ):
        with unless_refused():
            if is_local and value != reserved:
                report.refuse(
                    (key,),
                    value,
                    rule="local-cloud-id-required",
                    accepted=f"{reserved} with cloud: local, which has no other",
                    fix=f"{to_set((key,), reserved)}, or name a real cloud with {to_set(('cloud',), '<cloud>')}",
                )
            if not is_local and value == reserved:
                report.refuse(
                    (key,),
                    value,
                    rule="local-cloud-id-reserved",
                    accepted="an id of your own: this one is reserved for cloud: local",
                    fix=f"{to_set((key,), '<uuid>')}, or use the local cloud with {to_set(('cloud',), LOCAL_CLOUD)}",
                )


def _local_state_is_on_this_machine(settings: Settings, report: ProblemReport) -> None:
    if settings.cloud.name == LOCAL_CLOUD and settings.backend is not None:
        report.refuse(
            ("backend",),
            settings.backend,
            rule="backend-of-local-cloud",
            accepted="nothing with cloud: local, whose stacks have a backend of their own",
        )


def _kubeconfig_is_the_local_clouds(settings: Settings, local: LocalEnvironment | None, report: ProblemReport) -> None:
    cluster = settings.management_cluster
    if settings.cloud.name == LOCAL_CLOUD and local and cluster and cluster.kubeconfig not in (None, local.kubeconfig):
        place = ("managementCluster", "kubeconfig")
        accepted = "nothing with cloud: local, whose own kubeconfig is taken"
        report.refuse(place, cluster.kubeconfig, rule="kubeconfig-of-local-cloud", accepted=accepted)


def _failed_renewals_have_time(settings: Settings, report: ProblemReport) -> None:
    lifetime, before = settings.credentials.lifetime_days, settings.credentials.renew_before_days
    is_shorter = before < lifetime  # first: it ends the rule if one of them was refused
    least = least_renew_before_days(lifetime)
    if not is_shorter or before < least:
        place = ("credentials", "renewBeforeDays")
        most = lifetime - 1
        days, value = (f"{least} to {most}", f"<{least}-{most}>") if least < most else (f"{least}", f"{least}")
        report.refuse(
            place,
            before,
            rule="renewal-date",
            accepted=f"{days} with credentials.lifetimeDays {lifetime}: a third of the lifetime, or "
            "30 days of a long one, is the time in which renewals may fail and pods may load late",
            fix=f"{to_set(place, value)}, or change credentials.lifetimeDays",
        )


def _gate_has_time_to_settle(settings: Settings, report: ProblemReport) -> None:
    propagation = settings.credentials.propagation
    if propagation.timeout_seconds <= propagation.settle_seconds:
        place = ("credentials", "propagation", "timeoutSeconds")
        accepted = "more than credentials.propagation.settleSeconds"
        report.refuse(
            place,
            propagation.timeout_seconds,
            rule="propagation-timeout-too-short",
            accepted=accepted,
            fix=to_set(place, "<seconds>"),
        )


def _vault_and_key_vault_user_are_here_or_shared(settings: Settings, report: ProblemReport) -> None:
    set_shared = to_set(("sharedStack",), "<organization>/<project>/<stack>")
    if settings.shared_stack is None:
        if settings.vault is None and settings.uses_vault:
            accepted = "the Key Vault of the credentials, by its name; or sharedStack, the stack that has it"
            fix = f"{to_set(('vault', 'name'), '<vault>')}, or {set_shared}"
            report.refuse(("vault",), None, rule="vault-missing", accepted=accepted, fix=fix)
        if settings.vault is None and not settings.uses_vault and "key_vault_user" in settings.model_fields_set:
            report.refuse(
                ("keyVaultUser",),
                {},
                rule="key-vault-user-without-vault",
                accepted="nothing without a vault, which no hosted cluster of the stack needs",
                fix=f"{to_remove(('keyVaultUser',))}, or {to_set(('vault', 'name'), '<vault>')}",
            )
        return
    for key, is_set, value in (
        ("vault", settings.vault is not None, {}),
        ("keyVaultUser", "key_vault_user" in settings.model_fields_set, {}),
        ("readerScope", settings.reader_scope != "vault", settings.reader_scope),
    ):
        if is_set:
            accepted = "nothing with sharedStack, which has the vault and the key-vault-user"
            report.refuse(
                (key,),
                value,
                rule="vault-of-shared-stack",
                accepted=accepted,
                fix=f"{to_remove((key,))}, or {to_remove(('sharedStack',))}",
            )


def _vault_lists_have_an_effect(settings: Settings, report: ProblemReport) -> None:
    vault = settings.vault
    if vault is None:
        return
    if not vault.public_network_access:
        overruling = "publicNetworkAccess: false, which leaves private endpoints only"
        fix = to_set(("vault", "publicNetworkAccess"), "true")
    elif vault.default_action == "Allow":
        overruling = "defaultAction: Allow, which lets every network in"
        fix = to_set(("vault", "defaultAction"), "Deny")
    else:
        return
    for key, networks in (("allowedIpRanges", vault.allowed_ip_ranges), ("allowedSubnetIds", vault.allowed_subnet_ids)):
        with unless_refused():
            if networks:
                place = ("vault", key)
                report.refuse(
                    place,
                    networks,
                    rule="vault-networks-without-effect",
                    accepted=f"nothing with {overruling}",
                    fix=f"{to_remove(place)}, or {fix}",
                )


def _vault_admits_somebody(settings: Settings, report: ProblemReport) -> None:
    vault = settings.vault
    if vault is None or not vault.public_network_access or vault.default_action == "Allow":
        return
    if not vault.allowed_ip_ranges and not vault.allowed_subnet_ids:
        ranges, subnets = ("vault", "allowedIpRanges"), ("vault", "allowedSubnetIds")
        report.refuse(
            ("vault", "defaultAction"),
            "Deny",
            rule="vault-admits-nobody",
            accepted=f"{path_of(ranges)} or {path_of(subnets)} with defaultAction: Deny, the default: without them "
            "neither the deployer nor the nodes reach the vault",
            fix=f"{to_set((*ranges, 0), '<range of the deployer>')} and "
            f"{to_set((*subnets, 0), '<subnet of the nodes>')}, or {to_set(('vault', 'defaultAction'), 'Allow')}, "
            "which leaves it to roles alone who reads a secret",
        )


def _key_vault_user_is_described_by_its_source(settings: Settings, report: ProblemReport) -> None:
    if not settings.has_key_vault_user:
        return
    user = settings.key_vault_user
    required = {"aks-addon": (), "existing": ("clientId", "objectId"), "created": ("name",)}[user.source]
    for key, value, what in (
        ("clientId", user.client_id, "the client id of the identity with which the CSI driver reads the vault"),
        (
            "objectId",
            user.object_id,
            "the object id of that identity's service principal: it gets the role on the vault",
        ),
        ("name", user.name, "the name of the managed identity to create"),
    ):
        place = ("keyVaultUser", key)
        if key in required and value is None:
            report.refuse(
                place,
                None,
                rule="key-vault-user-key-missing",
                accepted=what,
                fix=to_set(place, "<name>" if key == "name" else "<uuid>"),
            )
        if key not in required and value is not None:
            fix = f"{to_remove(place)}, or choose another keyVaultUser.source"
            report.refuse(
                place, value, rule="key-vault-user-key-unused", accepted=f"nothing with source: {user.source}", fix=fix
            )


def _creating(settings: Settings) -> Iterator[str]:
    """The place that makes the stack create objects in the management cluster, if there is one."""
    if settings.makes_cluster_sides:
        yield "clusterSide: stack"
        return
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            if cluster.hosted_cluster is not None:
                yield path_of(("hostedClusters", index, "hostedCluster"))
                return


def _management_cluster_is_named_where_needed(settings: Settings, report: ProblemReport) -> None:
    if settings.management_cluster is not None:
        return
    from_addon = settings.has_key_vault_user and settings.key_vault_user.source == "aks-addon"
    reasons = [
        *(["keyVaultUser.source: aks-addon reads its add-on's identity"] if from_addon else []),
        *(f"{place} creates objects in it" for place in _creating(settings)),
    ]
    if reasons:
        place = ("managementCluster",)
        set_both = " and ".join(
            to_set((*place, key), blank)
            for key, blank in (("resourceGroup", "<resource-group>"), ("name", "<aks-cluster>"))
        )
        accepted = f"resourceGroup and name of the AKS cluster: {enumerate_words(reasons)}"
        report.refuse(place, None, rule="management-cluster-missing", accepted=accepted, fix=set_both)


def _metadata_is_blocked_in_own_namespaces(settings: Settings, report: ProblemReport) -> None:
    is_hypershifts = bool(settings.hosted_clusters) and not settings.makes_cluster_sides
    if settings.block_instance_metadata and (is_hypershifts or settings.cluster_side == "hypershift"):
        place = ("blockInstanceMetadata",)
        or_stack = f", or {to_set(('clusterSide',), 'stack')}" if settings.cluster_side == "hypershift" else ""
        report.refuse(
            place,
            True,
            rule="metadata-block-without-effect",
            accepted="nothing where HyperShift makes the namespaces and their policies: with clusterSide: hypershift, "
            "and in a stack whose hosted clusters all have workload identities",
            fix=to_remove(place) + or_stack,
        )


def _probe_has_an_image_where_needed(settings: Settings, report: ProblemReport) -> None:
    if settings.makes_cluster_sides and settings.probe.image is None:
        place = ("probe", "image")
        report.refuse(
            place,
            None,
            rule="probe-image-missing",
            accepted="the image of the credential probe: clusterSide: stack runs one for each mount",
            fix=f"{to_set(place, '<image>')}, which `make probe-image REGISTRY=<registry>` pushes, or "
            f"{to_set(('clusterSide',), 'hypershift')}",
        )


def _clusters_have_names_of_their_own(settings: Settings, report: ProblemReport) -> None:
    names: dict[str, Place] = {}
    infra_ids: dict[str, Place] = {}
    for index, cluster in enumerate(settings.hosted_clusters):
        name, infra_id = ("hostedClusters", index, "name"), ("hostedClusters", index, "infraID")
        with unless_refused():
            first = names.setdefault(dashed(cluster.name), name)
            if first != name:
                accepted = f"a name other than {path_of(first)}; a dot counts as a hyphen"
                report.refuse(
                    name, cluster.name, rule="duplicate-cluster-name", accepted=accepted, fix=to_set(name, "<cluster>")
                )
                continue  # whatever follows from the name is equal as well
            first = infra_ids.setdefault(cluster.infra_id, infra_id)
            if first != infra_id:
                accepted = f"an id other than {path_of(first)}: the names of role assignments are made of it"
                report.refuse(
                    infra_id,
                    cluster.infra_id,
                    rule="duplicate-infra-id",
                    accepted=accepted,
                    fix=to_set(infra_id, "<infra-id>"),
                )


def _secrets_have_names_of_their_own(settings: Settings, report: ProblemReport) -> None:
    owners: dict[str, Place] = {}
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
                place: Place = ("hostedClusters", index, "identities", row.field, "secretName")
                # Key Vault ignores the case of letters.
                first = owners.setdefault(identity.secret_name.lower(), place) if identity.enabled else place
                if first != place:
                    accepted = f"a name other than {path_of(first)}: one secret holds one credential"
                    report.refuse(
                        place,
                        identity.secret_name,
                        rule="duplicate-secret-name",
                        accepted=accepted,
                        fix=to_set(place, "<secret>"),
                    )


_RULES: Final[tuple[Callable[[Settings, ProblemReport], None], ...]] = (
    _reserved_ids_fit_cloud,
    _local_state_is_on_this_machine,
    _vault_and_key_vault_user_are_here_or_shared,
    _vault_lists_have_an_effect,
    _vault_admits_somebody,
    _key_vault_user_is_described_by_its_source,
    _management_cluster_is_named_where_needed,
    cluster_is_reached_in_one_way,
    login_is_described,
    created_cluster_has_a_network_that_works,
    created_cluster_has_one_authority,
    created_cluster_is_reached_through_entra,
    created_cluster_belongs_to_the_vaults_stack,
    _failed_renewals_have_time,
    _gate_has_time_to_settle,
    monitored_vault_is_the_stacks_own,
    audit_log_goes_somewhere,
    expiry_alerts_tell_somebody,
    expiry_alerts_come_after_the_renewal,
    _metadata_is_blocked_in_own_namespaces,
    _probe_has_an_image_where_needed,
    _clusters_have_names_of_their_own,
    created_issuers_have_names_of_their_own,
    _secrets_have_names_of_their_own,
    created_groups_are_the_clusters_own,
    used_once_is_switched_on_once,
    applied_clusters_sign_in_in_one_way,
)
