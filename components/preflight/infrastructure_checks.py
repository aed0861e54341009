"""Compares a hosted cluster's objects in Azure: locations, the subnet's security group, egress, the private zone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.preflight.azure_objects import (
    Answers,
    AzureLookup,
    egress,
    private_zone,
    private_zone_link,
    resource_group,
    security_group,
    subnet,
    virtual_network,
)
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings, Problem, Settings
from identity.settings.rules.infrastructure import apart_from, default_networks_in
from identity.settings.schema.problems import Place, path_of, to_remove, to_set


def compare_infrastructure(
    cluster: HostedClusterSettings, place: Place, answers: Answers, settings: Settings
) -> Iterator[Problem]:
    """What differs from the configuration of the cluster at `place`; objects without an answer are skipped.

    The control-plane operator stops unless network, security group and managed resource group have one location
    (openshift/hypershift control-plane-operator/controllers/hostedcontrolplane/hostedcontrolplane_controller.go:
    3285-3345), and nodes can only be where their network is.
    """
    for key, lookup in (
        ("resourceGroup", resource_group(cluster.resource_group)),
        ("vnetID", virtual_network(cluster.vnet_id)),
        ("securityGroupID", security_group(cluster.security_group_id)),
        ("infraID", egress(cluster)),
    ):
        answer = answers.get(lookup)
        if answer is not None and not is_same_location(cluster.location, answer.get("location")):
            yield different_location((*place, key), lookup, answer, cluster, (*place, "location"))
    yield from _security_group_of_the_subnet(cluster, place, answers)
    yield from _attached_to_the_subnet(cluster, place, answers, settings.roles)
    yield from _subnet_apart_from_pods_and_services(cluster, place, answers)
    yield from _outbound_rule(cluster, place, answers)
    yield from _linked_zone(cluster, place, answers, settings.subscription_id)


def different_location(
    place: Place, lookup: AzureLookup, answer: Mapping[str, Any], cluster: HostedClusterSettings, location: Place
) -> Problem:
    """An object in another location than the hosted cluster."""
    return Problem(
        place=place,
        rule="location-differs",
        found=f'{lookup.description}, which is in "{answer.get("location")}"',
        accepted=f'one in "{cluster.location}": the hosted cluster, its network, its security group and its managed '
        "resource group have one location",
        fix=f"name an existing one, or correct {path_of(location)}",
    )


def is_same_location(configured: str, present: object) -> bool:
    """Whether ARM's name is the configured one: `East US` is `eastus`."""
    return configured.replace(" ", "").lower() == str(present).replace(" ", "").lower()


def _security_group_of_the_subnet(cluster: HostedClusterSettings, place: Place, answers: Answers) -> Iterator[Problem]:
    """`securityGroupID` is "an existing security group on the SubnetID" (api/hypershift/v1beta1/azure.go:450).

    A standard load balancer lets nothing in to a subnet without one.
    """
    lookup = subnet(cluster.subnet_id)
    answer = answers.get(lookup)
    if answer is None or security_group(cluster.security_group_id) not in answers:
        return
    group = (answer.get("networkSecurityGroup") or {}).get("id")
    if str(group).lower() != cluster.security_group_id.lower():
        has = f'whose network security group is "{group}"' if group else "which has no network security group"
        yield Problem(
            place=(*place, "subnetID"),
            rule="security-group-of-other-subnet",
            found=f"{lookup.description}, {has}",
            accepted=f"a subnet with the network security group of {path_of((*place, 'securityGroupID'))}",
            fix=f"`az network vnet subnet update --ids {cluster.subnet_id} --network-security-group "
            f"{cluster.security_group_id}`, or correct one of the two",
        )


def _attached_to_the_subnet(
    cluster: HostedClusterSettings, place: Place, answers: Answers, roles: str
) -> Iterator[Problem]:
    """Route table and NAT gateway of the subnet: with `roles: builtin` a role is assigned at both.

    Without it every write of the subnet is refused, as the writer may not join what the subnet refers to.
    """
    lookup = subnet(cluster.subnet_id)
    answer = answers.get(lookup)
    if answer is None:
        return
    for key, property_, what, configured in (
        ("routeTableID", "routeTable", "route table", cluster.route_table_id),
        ("natGatewayID", "natGateway", "NAT gateway", cluster.nat_gateway_id),
    ):
        attached = (answer.get(property_) or {}).get("id")
        if (configured or "").lower() == (attached or "").lower() or (configured is None and roles != "builtin"):
            continue
        at = (*place, key)
        yield Problem(
            place=at,
            rule="subnet-attachment-differs",
            found=f'"{configured}"' if configured is not None else "nothing",
            accepted=f'"{attached}", which is the {what} of {lookup.description}'
            if attached
            else f"nothing: {lookup.description} has no {what}",
            fix=to_set(at, attached) if attached else to_remove(at),
        )


def _subnet_apart_from_pods_and_services(
    cluster: HostedClusterSettings, place: Place, answers: Answers
) -> Iterator[Problem]:
    lookup = subnet(cluster.subnet_id)
    answer = answers.get(lookup) or {}
    for nodes in answer.get("addressPrefixes") or filter(None, [answer.get("addressPrefix")]):
        for key, taken in default_networks_in(nodes, cluster):
            yield Problem(
                place=(*place, "subnetID"),
                rule="network-of-pods-or-services",
                found=f"{lookup.description}, which is {nodes}",
                accepted=apart_from(key, taken),
                fix=f"name another subnet, or set spec.networking.{key} in the HostedCluster",
            )


def _outbound_rule(cluster: HostedClusterSettings, place: Place, answers: Answers) -> Iterator[Problem]:
    """The nodes join the backend pool with the name of the infrastructure id, whose outbound rule lets them out.

    Source: hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:450-452 and
    cmd/infra/azure/networking.go:432-451.
    """
    lookup = egress(cluster)
    answer = answers.get(lookup)
    if answer is None:
        return
    frontends = {_id(frontend) for frontend in _list(answer, "frontendIPConfigurations") if _is_public(frontend)}
    rules = [
        rule
        for rule in _list(answer, "outboundRules")
        if _id(rule.get("backendAddressPool")).endswith(f"/backendaddresspools/{cluster.infra_id}")
        and not frontends.isdisjoint(_id(frontend) for frontend in _list(rule, "frontendIPConfigurations"))
    ]
    if not rules:
        yield Problem(
            place=(*place, "infraID"),
            rule="egress-without-outbound-rule",
            found=f"{lookup.description}, which has no outbound rule from the backend pool "
            f'"{cluster.infra_id}" to a public address',
            accepted=f'a load balancer with a backend pool "{cluster.infra_id}" and an outbound rule: the nodes join '
            "that pool, and reach the internet by that rule",
            fix=f"`az network lb address-pool create --resource-group {cluster.resource_group} --lb-name "
            f"{cluster.infra_id} --name {cluster.infra_id}` and `az network lb outbound-rule create --resource-group "
            f"{cluster.resource_group} --lb-name {cluster.infra_id} --name {cluster.infra_id} --address-pool "
            f"{cluster.infra_id} --frontend-ip-configs <frontend> --protocol All`",
        )


def _linked_zone(
    cluster: HostedClusterSettings, place: Place, answers: Answers, subscription: str
) -> Iterator[Problem]:
    """The nodes resolve the names of the private zone only if a link of any name leads to their network."""
    if cluster.dns is None or cluster.dns.private_zone_id is None:
        return
    lookup = private_zone(cluster.dns.private_zone_id)
    zone = answers.get(lookup)
    if zone is None:
        return
    link = answers.get(private_zone_link(cluster, cluster.dns.private_zone_id, subscription))
    linked = _id(link.get("virtualNetwork")) if link is not None else None
    if linked == cluster.vnet_id.lower() or (linked is None and zone.get("numberOfVirtualNetworkLinks")):
        return
    name = cluster.names(subscription).stem
    yield Problem(
        place=(*place, "dns", "privateZoneID"),
        rule="private-zone-not-linked",
        found=f"{lookup.description}, "
        + (f'whose link "{name}" is to "{linked}"' if linked else "which is linked to no network"),
        accepted=f"a zone with a link to the network of {path_of((*place, 'vnetID'))}",
        fix=f"`az network private-dns link vnet create --resource-group "
        f"{parse_arm_id(cluster.dns.private_zone_id).resource_group} "
        f"--zone-name {lookup.arguments[-1][1]} --name {name} --virtual-network {cluster.vnet_id} "
        "--registration-enabled false`",
    )


def _is_public(frontend: Mapping[str, Any]) -> bool:
    return bool(frontend.get("publicIPAddress") or frontend.get("publicIPPrefix"))


def _list(holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return list(holder.get(key) or ())


def _id(reference: object) -> str:
    """The id in a reference, in lower case."""
    return str(reference.get("id")).lower() if isinstance(reference, Mapping) else ""
