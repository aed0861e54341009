"""The rules of hosted clusters' infrastructure; see `stack.py`."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, ip_network
from typing import Final

from identity.hypershift import POD_NETWORK, SERVICE_NETWORK
from identity.naming import parse_arm_id
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace, value_at

# Of a virtual network's name, which is shorter than all the others (azure-docs `resource-name-rules`).
LONGEST_STEM: Final = 64


def validate_infrastructure(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule about infrastructure to the hosted cluster at `place`."""
    if cluster.infrastructure == "existing":
        _nothing_is_said_of_an_existing_network(cluster, place)
        return
    rules = (
        _names_are_short_enough,
        _zones_are_known,
        _subnet_is_inside,
        _nodes_are_apart_from_pods_and_services,
        _nothing_else_is_named,
    )
    apply(rules, settings, cluster, place)


def created_groups_are_the_clusters_own(settings: Settings, root: ReportedPlace) -> None:
    """A group that the stack makes is deleted with its content, so nothing else may be in it."""
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            if cluster.infrastructure == "existing":
                continue
            own = {group.lower(): group for group in cluster.names(settings.subscription_id).groups}
            for place, group in _other_groups(settings, index, root):
                if group.lower() in own:
                    at = root / "hostedClusters" / index / "infraID"
                    at.refuse(
                        cluster.infra_id,
                        rule="created-group-shared",
                        accepted="an id with which the resource groups of infrastructure: create are the cluster's "
                        f"own: {place} is in {own[group.lower()]}, too, which is deleted with the cluster",
                        fix=at.to_set("<infra-id>"),
                    )
                    break


def _other_groups(settings: Settings, own: int, root: ReportedPlace) -> Iterator[tuple[ReportedPlace, str]]:
    """Resource groups that the rest of the configuration names, each with its place."""
    yield root / "resourceGroup", settings.resource_group
    if settings.management_cluster is not None:
        yield root / "managementCluster" / "resourceGroup", settings.management_cluster.resource_group
    for index, cluster in enumerate(settings.hosted_clusters):
        place = root / "hostedClusters" / index
        with unless_refused():
            if cluster.kms is not None:
                yield place / "kms" / "keyVaultResourceGroup", cluster.kms.key_vault_resource_group
                yield place / "kms" / "backupKeyVaultResourceGroup", cluster.kms.backup_key_vault_resource_group
        with unless_refused():
            yield place / "dnsZoneResourceGroup", cluster.dns_zone_resource_group
        if index == own:
            continue
        with unless_refused():
            yield place / "resourceGroup", cluster.resource_group
            yield place / "vnetID", parse_arm_id(cluster.vnet_id.lower()).resource_group
            yield place / "securityGroupID", parse_arm_id(cluster.security_group_id.lower()).resource_group


def _nothing_is_said_of_an_existing_network(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if cluster.network is not None:
        at = place / "network"
        at.refuse(
            {},
            rule="ranges-of-existing-network",
            accepted="nothing with infrastructure: existing: the network of vnetID has its ranges",
            fix=f"{at.to_remove()}, or {(place / 'infrastructure').to_set('create')}",
        )


def _names_are_short_enough(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    length = len(cluster.names(settings.subscription_id).stem)
    if length > LONGEST_STEM:
        at = place / "infraID"
        at.refuse(
            cluster.infra_id,
            rule="created-network-name-too-long",
            accepted="an id with which the network's name <name>-<infraID> has at most "
            f"{LONGEST_STEM} characters, as Azure demands",
            fix=at.to_set("<infra-id>"),
            reason=f"the name has {length} characters",
        )


def _zones_are_known(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    at = place / "dns"
    why = "with infrastructure: create, where the stack makes the private zone <name>.<baseDomain>"
    if cluster.dns is None:
        at.refuse(
            None,
            rule="created-infrastructure-without-domain",
            accepted=f"baseDomain and publicZoneID {why}",
            fix=f"{(at / 'baseDomain').to_set('<domain>')} and {(at / 'publicZoneID').to_set('<resource id>')}",
        )
    elif cluster.dns.public_zone_id is None:
        zone = at / "publicZoneID"
        zone.refuse(
            None,
            rule="created-infrastructure-without-public-zone",
            accepted=f"the resource id of the public zone of {at / 'baseDomain'} {why}, and the public one "
            "exists already",
            fix=f"{zone.to_set('<resource id>')}; `az network dns zone show -g <group> -n <domain> --query id` "
            "prints it",
        )


def _subnet_is_inside(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    network = cluster.network
    if network is None:
        return
    if not IPv4Network(network.subnet_address_prefix).subnet_of(IPv4Network(network.address_prefix)):
        at = place / "network" / "subnetAddressPrefix"
        at.refuse(
            network.subnet_address_prefix,
            rule="subnet-range-outside-network",
            accepted=f"a range inside of {place / 'network' / 'addressPrefix'}, {network.address_prefix}",
            fix=at.to_set("<range>"),
        )


def _nodes_are_apart_from_pods_and_services(
    settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace
) -> None:
    if cluster.network is None:
        return
    nodes = cluster.network.subnet_address_prefix
    for key, taken in default_networks_in(nodes, cluster):
        at = place / "network" / "subnetAddressPrefix"
        at.refuse(
            nodes,
            rule="network-of-pods-or-services",
            accepted=apart_from(key, taken),
            fix=f"{at.to_set('<range>')}, or set spec.networking.{key} in the HostedCluster",
        )


def default_networks_in(nodes: str, cluster: HostedClusterSettings) -> Iterator[tuple[str, str]]:
    """Key of `spec.networking` and range of HyperShift's default networks that the range `nodes` meets.

    Of a HostedCluster that the stack applies, and that names no other; the one in a file may.
    """
    applied = cluster.hosted_cluster
    if applied is None or applied.file is not None:
        return
    for key, taken in (("clusterNetwork", POD_NETWORK), ("serviceNetwork", SERVICE_NETWORK)):
        is_default = value_at(applied.manifest or {}, ("spec", "networking", key)) is None
        if is_default and ip_network(nodes).overlaps(ip_network(taken)):
            yield key, taken


def apart_from(key: str, taken: str) -> str:
    """What is accepted instead of a range of nodes that meets a default of `spec.networking`."""
    return (
        f"a range apart from {taken}, the default of spec.networking.{key} of the HostedCluster, which cannot reach "
        "nodes in it"
    )


def _nothing_else_is_named(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    names = cluster.names(settings.subscription_id)
    values: list[tuple[ReportedPlace, str | None, str | None]] = [
        (place / "resourceGroup", cluster.resource_group, names.managed_group),
        (place / "vnetID", cluster.vnet_id, names.network_id),
        (place / "subnetID", cluster.subnet_id, names.subnet_id),
        (place / "securityGroupID", cluster.security_group_id, names.security_group_id),
        (place / "routeTableID", cluster.route_table_id, None),
        (place / "natGatewayID", cluster.nat_gateway_id, None),
    ]
    with unless_refused():
        if cluster.dns is not None:
            zone = names.private_zone_id(str(cluster.dns.base_domain))
            values.append((place / "dns" / "privateZoneID", cluster.dns.private_zone_id, zone))
    for at, value, expected in values:
        with unless_refused():
            if value != expected:
                at.refuse(
                    value,
                    rule="created-infrastructure-named",
                    accepted="nothing with infrastructure: create: the stack makes "
                    + (f"{expected}, as HyperShift names it" if expected else "a subnet without it"),
                    fix=f"{at.to_remove()}, or {(place / 'infrastructure').to_set('existing')}",
                )
