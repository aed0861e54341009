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
from identity.settings.schema.problems import enumerate_words
from identity.settings.schema.schema_node import ReportedPlace
from identity.settings.schema.workloads import TolerationSettings, WorkloadSettings


def validate_kms(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the encryption of the hosted cluster at `place`."""
    if cluster.kms is not None:
        rules = (_backup_key_is_another, _one_vault_is_in_one_group, _local_cloud_has_no_hsm)
        apply(rules, settings, cluster.kms, place / "kms")


def _backup_key_is_another(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.backup_key == kms.active_key:
        at = place / "backupKey"
        at.refuse("backup-key-is-active", otherwise=at.to_set())


def _one_vault_is_in_one_group(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.backup_key is None or kms.backup_key.key_vault_name.lower() != kms.active_key.key_vault_name.lower():
        return
    if kms.backup_key_vault_resource_group.lower() != kms.key_vault_resource_group.lower():
        (place / "backupKeyVaultResourceGroup").refuse("backup-key-group-mismatch", vault=kms.active_key.key_vault_name)


def _local_cloud_has_no_hsm(settings: Settings, kms: KmsSettings, place: ReportedPlace) -> None:
    if kms.is_managed_hsm and settings.cloud.name == LOCAL_CLOUD:
        (place / "keyVaultType").refuse("managed-hsm-on-local-cloud", (place / "activeKey").to_set())


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
                    (place / cluster.managed_identities.index(row.field)).refuse(
                        "optional-identity-used-once", first=first, why=row.used_once
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
            at.require("optional-resource-in-other-subscription")
        return
    if users := cluster.users_of(scope):
        at.require("optional-resource-missing", scope=scope, users=enumerate_words(users))


def _management_issuer_is_given(cluster: HostedClusterSettings, at: ReportedPlace) -> None:
    users = [row.field for row in cluster.optional_rows if row.subjects]
    if users and cluster.management_issuer_url is None:
        at.require("management-issuer-missing", users=enumerate_words(users))


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
            "private-access-missing",
            (at / "type").to_set(),
            otherwise=topology.to_set("Public"),
            topology=cluster.topology,
        )
    if cluster.private is not None and not is_private:
        at.refuse("private-access-without-topology", otherwise=topology.to_set("<PublicAndPrivate|Private>"))


def _one_way_is_described(private: PrivateSettings, place: ReportedPlace) -> None:
    for key, way, value in (("privateLink", "PrivateLink", private.private_link), ("swift", "Swift", private.swift)):
        at = place / key
        if private.type == way and value is None:
            at.refuse("private-access-incomplete", f"write it as YAML at {at} in the stack file", way=way)
        if private.type != way and value is not None:
            at.refuse("private-access-unused", otherwise=(place / "type").to_set(way), type=private.type)


def _private_link_is_whole(private: PrivateSettings, place: ReportedPlace) -> None:
    link = private.private_link
    if link is None:
        return
    place = place / "privateLink"
    subscriptions = link.additional_allowed_subscriptions
    if link.nat_subnet_id is None and not subscriptions:
        place.refuse("private-link-empty", (place / "natSubnetID").to_set(), reason="it is empty")
    at = place / "additionalAllowedSubscriptions"
    if len(subscriptions) > _MOST_SUBSCRIPTIONS or len(set(subscriptions)) < len(subscriptions):
        at.refuse(
            "private-link-subscriptions",
            f"write it as YAML at {at} in the stack file",
            reason=f"{len(subscriptions)} entries, {len(set(subscriptions))} of them different",
            most=_MOST_SUBSCRIPTIONS,
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
        (place / "externalDnsDomain").require("external-domain-shadows-applications", domain=domain)


def _external_zone_holds_the_external_domain(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    external, zone = cluster.external_dns_domain, cluster.external_dns_zone_id
    if external is not None and zone is not None and not _is_below(external, parse_arm_id(zone.lower()).name):
        (place / "externalDnsZoneID").require("external-zone-of-other-domain", external=external)


def _host_names_are_short_enough(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if cluster.external_dns_domain is None:
        return
    label = f"{_LONGEST_SERVICE}-{cluster.name}".partition(".")[0]
    if len(label) > _LONGEST_LABEL:
        (place / "name").require(
            "host-name-too-long",
            reason=f"the label has {len(label)} characters",
            service=_LONGEST_SERVICE,
            longest=_LONGEST_LABEL,
        )


def _zone_has_the_clusters_domain(
    settings: Settings, cluster: HostedClusterSettings, zone: str, at: ReportedPlace
) -> None:
    base = cluster.dns and cluster.dns.base_domain
    domain = f"{cluster.name}.{base}"
    if not _is_below(domain, parse_arm_id(zone.lower()).names[-1]):
        at.require("zone-of-other-domain", domain=domain, base=base)


def _zone_is_where_its_role_is(
    settings: Settings, cluster: HostedClusterSettings, zone: str, at: ReportedPlace
) -> None:
    """The groups of the ingress operator's role (`support/azureutil/azureutil.go:382-384`), or the zone itself."""
    arm_id = parse_arm_id(zone.lower())
    groups, other = [arm_id.resource_group], ""
    if settings.roles == "hypershift":
        network = parse_arm_id(cluster.vnet_id.lower()).resource_group
        groups = [group.lower() for group in (cluster.resource_group, network, cluster.dns_zone_resource_group)]
        other = ", in the resource group of dnsZoneResourceGroup, of resourceGroup or of vnetID"
    if arm_id.subscription != settings.subscription_id or arm_id.resource_group not in groups:
        at.require("zone-without-role", groups=other)


def _is_below(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


_ROWS = {row.field: row for row in CONTROL_PLANE}


def validate_workloads(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the workloads of the hosted cluster at `place`."""
    place = place / "workloads"
    if cluster.workloads and settings.cluster_side != "stack":
        place.refuse("workloads-with-hypershift-side", otherwise=place.at(("clusterSide",)).to_set("stack"))
        return
    apply((_workloads_have_names_of_their_own,), cluster, place)
    for index, workload in enumerate(cluster.workloads):
        apply((_identities_are_there,), cluster, workload, place / index / "identities")
        with unless_refused():
            for number, toleration in enumerate(workload.tolerations):
                apply((_toleration_is_whole,), toleration, place / index / "tolerations" / number)


def _workloads_have_names_of_their_own(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    taken: dict[str, object] = {
        row.probe_name(mount): "a credential probe" for row in CONTROL_PLANE for mount in row.mounts
    }
    for index, workload in enumerate(cluster.workloads):
        with unless_refused():
            (place / index / "name").require_own("duplicate-workload-name", taken, workload.name)


def _identities_are_there(cluster: HostedClusterSettings, workload: WorkloadSettings, place: ReportedPlace) -> None:
    fields = workload.identities
    if not fields:
        place.refuse("workload-without-identity", (place / 0).to_set("<identity>"), reason="it is empty")
    for index, field in enumerate(fields):
        at = place / index
        if field in fields[:index]:
            at.refuse("duplicate-workload-identity")
        with unless_refused():
            if not cluster.identity(_ROWS[field]).enabled:
                at.refuse("workload-identity-disabled")
    try:
        side_by_side([_ROWS[field] for field in dict.fromkeys(fields)])
    except MountCollisionError as error:
        place.refuse(
            "workload-mounts-collide", f"give {error.first} and {error.second} a workload each", reason=str(error)
        )


def _toleration_is_whole(toleration: TolerationSettings, place: ReportedPlace) -> None:
    if toleration.operator == "Equal" and toleration.key is None:
        every = f"{(place / 'operator').to_set('Exists')} to tolerate every taint"
        (place / "key").require("toleration-without-key", "<taint>", otherwise=every)
    if toleration.operator == "Exists" and toleration.value:
        (place / "value").refuse("toleration-value-unused")
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        evict = (place / "effect").to_set("NoExecute")
        (place / "tolerationSeconds").refuse("toleration-seconds-unused", otherwise=evict)
