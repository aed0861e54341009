"""The rules of a hosted cluster's domains and zones; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.naming import parse_arm_id
from identity.settings.schema.dns import DnsSettings
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.invalid import apply
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace

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
            external,
            rule="external-domain-shadows-applications",
            accepted=f"a domain that does not hold {domain}: its private zone would hide the applications",
            fix=at.to_set("<domain>"),
        )


def _external_zone_holds_the_external_domain(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    at = place / "externalDnsZoneID"
    external, zone = cluster.external_dns_domain, cluster.external_dns_zone_id
    if external is not None and zone is not None and not _is_below(external, parse_arm_id(zone.lower()).name):
        at.refuse(
            zone,
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
            cluster.name,
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
            zone,
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
            zone,
            rule="zone-without-role",
            accepted=f"{accepted}: the identity that writes its records has its role there",
            fix=at.to_set("<resource id>"),
        )


def _is_below(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")
