"""The rules of one part of a hosted cluster: KMS, optional identities, endpoint access, DNS, workloads."""

from __future__ import annotations

from typing import Final

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import MountCollisionError, Scope, side_by_side
from identity.clouds import LOCAL_CLOUD
from identity.naming import parse_arm_id
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.endpoints import DnsSettings, PrivateSettings
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.kms import KmsSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace, enumerate_words, to_set
from identity.settings.schema.workloads import TolerationSettings, WorkloadSettings


def validate_kms(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the encryption of the hosted cluster at `place`."""
    if cluster.kms is not None:
        rules = (_backup_key_is_another, _one_vault_is_in_one_group, _local_cloud_has_no_hsm)
        apply(rules, settings, cluster.kms, place / "kms")


def _backup_key_is_another(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.backup_key == kms.active_key:
        at = place / "backupKey"
        at.refuse(
            rule="backup-key-is-active",
            accepted=f"the key that encrypted etcd before {place / 'activeKey'}, or nothing",
            fix=f"{at.to_remove()}, or {at.to_set('<url>')}",
        )


def _one_vault_is_in_one_group(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.backup_key is None or kms.backup_key.key_vault_name.lower() != kms.active_key.key_vault_name.lower():
        return
    if kms.backup_key_vault_resource_group.lower() != kms.key_vault_resource_group.lower():
        at = place / "backupKeyVaultResourceGroup"
        at.refuse(
            rule="backup-key-group-mismatch",
            accepted=f"the group of {place / 'keyVaultResourceGroup'}, or nothing: both keys are in "
            f"{kms.active_key.key_vault_name}",
        )


def _local_cloud_has_no_hsm(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.is_managed_hsm and settings.cloud.name == LOCAL_CLOUD:
        at = place / "keyVaultType"
        at.refuse(
            rule="managed-hsm-on-local-cloud",
            accepted="KeyVault with cloud: local, which has no managed HSM",
            fix=(place / "activeKey").to_set("<url>"),
        )


def validate_optional_identities(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the resources that only optional identities use."""
    apply((_management_issuer_is_given,), cluster, place / "managementIssuerURL")
    for scope, key in _KEYS.items():
        apply((_resource_is_given,), settings, cluster, scope, place / key)


def used_once_is_switched_on_once(settings: Settings, root: ReportedPlace) -> None:
    """The hosted clusters of a stack are on one management cluster, so a second identity would be useless."""
    owners: dict[str, ReportedPlace] = {}
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            for row in cluster.optional_rows:
                place = root / "hostedClusters" / index / "managedIdentities"
                if row.used_once is not None and (first := owners.setdefault(row.field, place)) != place:
                    at = place / cluster.managed_identities.index(row.field)
                    at.refuse(
                        rule="optional-identity-used-once",
                        accepted=f"nothing: {first} has it for all hosted clusters of the management "
                        f"cluster, because {row.used_once}",
                    )


# The key that names the resource of a scope; all other scopes follow from keys that every hosted cluster has.
_KEYS = {
    Scope.BACKUP_STORAGE: "backupStorageAccountID",
    Scope.REGISTRY: "containerRegistryID",
    Scope.EXTERNAL_ZONE: "externalDnsZoneID",
}


def _resource_is_given(settings: Settings, cluster: HostedClusterSettings, scope: Scope, at: ReportedPlace) -> None:
    """In the stack's subscription, if an identity has a role there."""
    arm_id = cluster.optional_resource(scope)
    if arm_id is not None:
        if parse_arm_id(arm_id.lower()).subscription != settings.subscription_id:
            at.refuse(
                rule="optional-resource-in-other-subscription",
                accepted="a resource in the subscription of subscriptionId, where the stack looks it up",
                fix=at.to_set("<resource id>"),
            )
        return
    if users := cluster.users_of(scope):
        at.refuse(
            rule="optional-resource-missing",
            accepted=f"the resource id of the {scope}, where the role of {enumerate_words(users)} is",
            fix=at.to_set("<resource id>"),
        )


def _management_issuer_is_given(cluster: HostedClusterSettings, at: ReportedPlace) -> None:
    users = [row.field for row in cluster.optional_rows if row.subjects]
    if users and cluster.management_issuer_url is None:
        at.refuse(
            rule="management-issuer-missing",
            accepted=f"the management cluster's OIDC issuer, whose service accounts use {enumerate_words(users)}; "
            "`az aks show --query oidcIssuerProfile.issuerUrl` prints it",
            fix=at.to_set("<url>"),
        )


# MaxItems of `additionalAllowedSubscriptions`.
_MOST_SUBSCRIPTIONS: Final = 50


def validate_endpoint_access(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to `topology` and `private` of the hosted cluster at `place`."""
    apply((_private_access_is_described,), cluster, place)
    if cluster.private is not None:
        apply((_one_way_is_described, _private_link_is_whole), cluster.private, place / "private")


def _private_access_is_described(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    at, topology = place / "private", place / "topology"
    is_private = cluster.topology is not None and cluster.topology != "Public"
    if is_private and cluster.private is None:
        at.refuse(
            rule="private-access-missing",
            accepted=f"how the API server is reached privately, with {topology}: {cluster.topology}",
            fix=f"{(at / 'type').to_set('<PrivateLink|Swift>')}, or {topology.to_set('Public')}",
        )
    if cluster.private is not None and not is_private:
        at.refuse(
            rule="private-access-without-topology",
            accepted=f"nothing, unless {topology} is PublicAndPrivate or Private",
            fix=f"{at.to_remove()}, or {topology.to_set('<PublicAndPrivate|Private>')}",
        )


def _one_way_is_described(private: PrivateSettings, place: ReportedPlace) -> None:
    for key, way, value in (("privateLink", "PrivateLink", private.private_link), ("swift", "Swift", private.swift)):
        at = place / key
        if private.type == way and value is None:
            at.refuse(
                rule="private-access-incomplete",
                accepted=f"the keys of {way}, which is the type",
                fix=f"write it as YAML at {at} in the stack file",
            )
        if private.type != way and value is not None:
            at.refuse(
                rule="private-access-unused",
                accepted=f"nothing with type: {private.type}",
                fix=f"{at.to_remove()}, or {(place / 'type').to_set(way)}",
            )


def _private_link_is_whole(private: PrivateSettings, place: ReportedPlace) -> None:
    link = private.private_link
    if link is None:
        return
    place = place / "privateLink"
    subscriptions = link.additional_allowed_subscriptions
    if link.nat_subnet_id is None and not subscriptions:
        place.refuse(
            rule="private-link-empty",
            accepted="natSubnetID, additionalAllowedSubscriptions or both: the API refuses an empty privateLink",
            fix=(place / "natSubnetID").to_set("<resource id>"),
            reason="it is empty",
        )
    at = place / "additionalAllowedSubscriptions"
    if len(subscriptions) > _MOST_SUBSCRIPTIONS or len(set(subscriptions)) < len(subscriptions):
        at.refuse(
            rule="private-link-subscriptions",
            accepted=f"at most {_MOST_SUBSCRIPTIONS} subscriptions, each once",
            fix=f"write it as YAML at {at} in the stack file",
            reason=f"{len(subscriptions)} entries, {len(set(subscriptions))} of them different",
        )


# RFC 1035 2.3.4.
_LONGEST_LABEL: Final = 63
# The longest of the first words of the services' host names (`cmd/cluster/azure/create.go:486-520`).
_LONGEST_SERVICE: Final = "konnectivity"


def validate_dns(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule about domains and zones to the hosted cluster at `place`."""
    apply((_host_names_are_short_enough, _external_zone_holds_the_external_domain), cluster, place)
    dns = cluster.dns
    if dns is None:
        return
    apply((_external_domain_leaves_the_applications_alone,), cluster, dns, place)
    for key, zone in (("publicZoneID", dns.public_zone_id), ("privateZoneID", dns.private_zone_id)):
        # The private zone that the stack makes has its one name (`infrastructure.py`).
        if zone is None or (key == "privateZoneID" and cluster.infrastructure == "create"):
            continue
        at = place / "dns" / key
        apply((_zone_has_the_clusters_domain, _zone_is_where_its_role_is), settings, cluster, zone, at)


def _external_domain_leaves_the_applications_alone(
    cluster: HostedClusterSettings, dns: DnsSettings, place: ReportedPlace
) -> None:
    """As `validateExternalDNSDomain` in `cmd/cluster/azure/create.go:288-315`."""
    external, domain = cluster.external_dns_domain, f"{cluster.name}.{dns.base_domain}"
    if external is not None and _is_below(domain, external):
        at = place / "externalDnsDomain"
        at.refuse(
            rule="external-domain-shadows-applications",
            accepted=f"a domain that does not hold {domain}: its private zone would hide the applications",
            fix=at.to_set("<domain>"),
        )


def _external_zone_holds_the_external_domain(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    at = place / "externalDnsZoneID"
    external, zone = cluster.external_dns_domain, cluster.external_dns_zone_id
    if external is not None and zone is not None and not _is_below(external, parse_arm_id(zone.lower()).name):
        at.refuse(
            rule="external-zone-of-other-domain",
            accepted=f"a zone that holds {external}, the cluster's externalDnsDomain: external DNS writes its records",
            fix=at.to_set("<resource id>"),
        )


def _host_names_are_short_enough(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if cluster.external_dns_domain is None:
        return
    label = f"{_LONGEST_SERVICE}-{cluster.name}".partition(".")[0]
    if len(label) > _LONGEST_LABEL:
        at = place / "name"
        at.refuse(
            rule="host-name-too-long",
            accepted="with externalDnsDomain, a name with which each label of the host name "
            f"{_LONGEST_SERVICE}-<name> has at most {_LONGEST_LABEL} characters",
            fix=at.to_set("<cluster>"),
            reason=f"the label has {len(label)} characters",
        )


def _zone_has_the_clusters_domain(
    settings: Settings, cluster: HostedClusterSettings, zone: str, at: ReportedPlace
) -> None:
    base = cluster.dns and cluster.dns.base_domain
    domain = f"{cluster.name}.{base}"
    if not _is_below(domain, parse_arm_id(zone.lower()).names[-1]):
        at.refuse(
            rule="zone-of-other-domain",
            accepted=f"a zone that holds {domain}, such as {base}: the ingress operator writes its records",
            fix=at.to_set("<resource id>"),
        )


def _zone_is_where_its_role_is(
    settings: Settings, cluster: HostedClusterSettings, zone: str, at: ReportedPlace
) -> None:
    """The groups of the ingress operator's role (`support/azureutil/azureutil.go:382-384`), or the zone itself."""
    arm_id = parse_arm_id(zone.lower())
    accepted = "a zone in the subscription of subscriptionId"
    groups = [arm_id.resource_group]
    if settings.roles == "hypershift":
        network = parse_arm_id(cluster.vnet_id.lower()).resource_group
        groups = [group.lower() for group in (cluster.resource_group, network, cluster.dns_zone_resource_group)]
        accepted += ", in the resource group of dnsZoneResourceGroup, of resourceGroup or of vnetID"
    if arm_id.subscription != settings.subscription_id or arm_id.resource_group not in groups:
        at.refuse(
            rule="zone-without-role",
            accepted=f"{accepted}: the identity that writes its records has its role there",
            fix=at.to_set("<resource id>"),
        )


def _is_below(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


_ROWS = {row.field: row for row in CONTROL_PLANE}


def validate_workloads(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the workloads of the hosted cluster at `place`."""
    place = place / "workloads"
    if cluster.workloads and settings.cluster_side != "stack":
        place.refuse(
            rule="workloads-with-hypershift-side",
            accepted="nothing with clusterSide: hypershift, where HyperShift's operators make all objects",
            fix=f"{place.to_remove()}, or {to_set(('clusterSide',), 'stack')}",
        )
        return
    apply((_workloads_have_names_of_their_own,), cluster, place)
    for index, workload in enumerate(cluster.workloads):
        apply((_identities_are_there,), cluster, workload, place / index / "identities")
        with unless_refused():
            for number, toleration in enumerate(workload.tolerations):
                apply((_toleration_is_whole,), toleration, place / index / "tolerations" / number)


def _workloads_have_names_of_their_own(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    taken = {row.probe_name(mount): "a credential probe" for row in CONTROL_PLANE for mount in row.mounts}
    for index, workload in enumerate(cluster.workloads):
        with unless_refused():
            at = place / index / "name"
            if (owner := taken.get(workload.name)) is not None:
                accepted = f"another name than {owner} has: both would be the same Deployment"
                fix = at.to_set("<name>")
                at.refuse(rule="duplicate-workload-name", accepted=accepted, fix=fix)
            taken.setdefault(workload.name, str(at))


def _identities_are_there(cluster: HostedClusterSettings, workload: WorkloadSettings, place: ReportedPlace) -> None:
    fields = workload.identities
    if not fields:
        accepted = "the fields of one or more identities: a workload without one has no place in this stack"
        place.refuse(
            rule="workload-without-identity",
            accepted=accepted,
            fix=(place / 0).to_set("<identity>"),
            reason="it is empty",
        )
    for index, field in enumerate(fields):
        at = place / index
        if field in fields[:index]:
            at.refuse(rule="duplicate-workload-identity", accepted="each identity once")
        with unless_refused():
            if not cluster.identity(_ROWS[field]).enabled:
                at.refuse(
                    rule="workload-identity-disabled", accepted="an identity that is on; this one is switched off"
                )
    try:
        side_by_side([_ROWS[field] for field in dict.fromkeys(fields)])
    except MountCollisionError as error:
        place.refuse(
            rule="workload-mounts-collide",
            accepted="identities that fit into one container: each is mounted as in its own consumer's pod",
            fix=f"give {error.first} and {error.second} a workload each",
            reason=str(error),
        )


def _toleration_is_whole(toleration: TolerationSettings, place: ReportedPlace) -> None:
    if toleration.operator == "Equal" and toleration.key is None:
        at = place / "key"
        fix = f"{at.to_set('<taint>')}, or {(place / 'operator').to_set('Exists')} to tolerate every taint"
        accepted = "the key of a taint with operator: Equal"
        at.refuse(rule="toleration-without-key", accepted=accepted, fix=fix)
    if toleration.operator == "Exists" and toleration.value:
        at = place / "value"
        at.refuse(rule="toleration-value-unused", accepted="nothing with operator: Exists")
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        at = place / "tolerationSeconds"
        fix = f"{at.to_remove()}, or {(place / 'effect').to_set('NoExecute')}"
        at.refuse(rule="toleration-seconds-unused", accepted="nothing without effect: NoExecute", fix=fix)
