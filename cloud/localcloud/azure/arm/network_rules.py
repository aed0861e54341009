"""Rules that several types of Microsoft.Network share: names, address ranges, references.

Messages as users report them; `COVERAGE.md` has the source of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any, Final

from localcloud.azure.arm.resource_type import Call
from localcloud.azure.shared.refusals import refusal
from localcloud.core.store import Document

VIRTUAL_NETWORKS: Final = "Microsoft.Network/virtualNetworks"
SUBNETS: Final = f"{VIRTUAL_NETWORKS}/subnets"
SECURITY_GROUPS: Final = "Microsoft.Network/networkSecurityGroups"
ROUTE_TABLES: Final = "Microsoft.Network/routeTables"
NAT_GATEWAYS: Final = "Microsoft.Network/natGateways"
LOAD_BALANCERS: Final = "Microsoft.Network/loadBalancers"
PUBLIC_ADDRESSES: Final = "Microsoft.Network/publicIPAddresses"
INTERFACES: Final = "Microsoft.Network/networkInterfaces"
MACHINES: Final = "Microsoft.Compute/virtualMachines"
# Of each of them: azure-docs `resource-name-rules`, 1-80 characters (a virtual network's: 2-64).
NAME: Final = re.compile(r"[a-zA-Z0-9]([\w.-]{0,78}\w)?", re.ASCII)
# Of a security rule; `required` in azure-rest-api-specs network 2024-05-01, and priority (issue 22448).
_PARAMETERS: Final = ("protocol", "access", "direction", "priority")
_ONE_OF: Final = (
    ("sourceAddressPrefixes", "sourceAddressPrefix", "sourceApplicationSecurityGroups"),
    ("destinationAddressPrefixes", "destinationAddressPrefix", "destinationApplicationSecurityGroups"),
    ("sourcePortRanges", "sourcePortRange"),
    ("destinationPortRanges", "destinationPortRange"),
)


def check_name(name: str, pattern: re.Pattern[str] = NAME) -> None:
    """Refuse a name that Azure would not take: 400."""
    if not pattern.fullmatch(name):
        raise refusal("InvalidResourceName", name=name)


def check_security_rule(group_id: str, rule: Mapping[str, Any]) -> None:
    """Refuse a rule of a network security group that lacks what Azure requires: 400."""
    check_name(str(rule.get("name") or ""))
    properties, rule_id = rule.get("properties") or {}, f"{group_id}/securityRules/{rule['name']}"
    for name in _PARAMETERS:
        if properties.get(name) is None:
            raise refusal("SecurityRuleParameterMissing", name=f"{name[0].upper()}{name[1:]}", rule=rule_id)
    for names in _ONE_OF:
        if not any(properties.get(name) for name in names):
            *others, last = (f"{name[0].upper()}{name[1:]}" for name in names)
            raise refusal("SecurityRuleParametersMissing", rule=rule_id, others=", ".join(others), last=last)


def network(prefix: object, resource_id: str) -> IPv4Network:
    """An address range in CIDR notation; raises 400."""
    try:
        if "/" not in str(prefix):
            raise ValueError
        return IPv4Network(str(prefix))
    except ValueError:
        raise refusal("InvalidAddressPrefixFormat", prefix=prefix, resource=resource_id) from None


def reference(value: object) -> str | None:
    """The id in `{"id": ...}`, None without one."""
    resource_id = value.get("id") if isinstance(value, Mapping) else None
    return resource_id if isinstance(resource_id, str) else None


def referenced(call: Call, resource_id: str, referrer: str, location: str | None = None) -> Document:
    """The resource that another one refers to; 400 if it does not exist, or not in `location`."""
    resource = call.resources.get(resource_id)
    if resource is None or (location is not None and resource["location"] != location):
        raise refusal("InvalidResourceReference", resource=resource_id, referrer=referrer)
    return resource


def subscription_resources(call: Call, type_name: str) -> Iterator[Document]:
    """All resources of a type."""
    return call.resources.below(f"/subscriptions/{call.cloud.subscription_id}", type_name)


def users_of_subnet(call: Call, subnet_id: str) -> list[str]:
    """Ids of the configurations of network interfaces and load balancers in a subnet."""
    return [
        f"{owner['id']}/{key}/{configuration['name']}"
        for type_name, key in ((INTERFACES, "ipConfigurations"), (LOAD_BALANCERS, "frontendIPConfigurations"))
        for owner in subscription_resources(call, type_name)
        for configuration in owner["properties"].get(key, [])
        if (reference(configuration["properties"].get("subnet")) or "").lower() == subnet_id.lower()
    ]


def machine_with(call: Call, part_id: str) -> str | None:
    """Id of the machine that has an interface, or a disk."""
    for machine in subscription_resources(call, MACHINES):
        disks = machine["properties"].get("storageProfile", {}).get("dataDisks", [])
        parts = [disk.get("managedDisk") for disk in disks]
        parts += machine["properties"].get("networkProfile", {}).get("networkInterfaces", [])
        if any(str(reference(part)).lower() == part_id.lower() for part in parts):
            return str(machine["id"])
    return None


def refuse_used_interface(call: Call, interface_id: str, but: str = "") -> None:
    """Refuse what needs an interface that no machine but this one has: 400."""
    machine = machine_with(call, interface_id)
    if machine is not None and machine.lower() != but.lower():
        raise refusal("NicInUse", interface=interface_id, machine=machine)
