"""Fills in the keys that name a hosted cluster's infrastructure, where the stack makes it; see `defaults.py`."""

from __future__ import annotations

from typing import Any

from identity.infrastructure import InfrastructureNames
from identity.naming import parse_arm_id
from identity.settings.rules.infrastructure import LONGEST_STEM
from identity.settings.schema.invalid import INVALID
from identity.settings.schema.problems import Place


def fill_in_infrastructure(
    cluster: dict[str, Any], subscription: object, place: Place, filled: dict[Place, tuple[Place, ...]]
) -> None:
    """Complete the hosted cluster at `place` as `defaults.fill_in` does; `infraID` is filled in already."""
    name, infra_id = cluster.get("name"), cluster.get("infraID")
    sources: tuple[Place, ...] = ((*place, "name"), (*place, "infraID"), ("subscriptionId",))
    names: InfrastructureNames | None = None
    if isinstance(name, str) and isinstance(infra_id, str) and isinstance(subscription, str):
        names = InfrastructureNames(subscription, name, infra_id)
        # Refused by a rule of its own, with the reason.
        names = names if len(names.stem) <= LONGEST_STEM else None

    def follow(mapping: dict[str, Any], key: str, value: object, at: Place, *more: Place) -> None:
        if key not in mapping:
            mapping[key] = value
            filled[*at, key] = (*sources, *more)

    cluster.setdefault("network", {})
    follow(cluster, "resourceGroup", names.managed_group if names else INVALID, place)
    follow(cluster, "vnetID", names.network_id if names else INVALID, place)
    follow(cluster, "subnetID", names.subnet_id if names else INVALID, place)
    follow(cluster, "securityGroupID", names.security_group_id if names else INVALID, place)
    dns = cluster.get("dns")
    follow(cluster, "dnsZoneResourceGroup", _group(dns), place, (*place, "dns", "publicZoneID"))
    if isinstance(dns, dict):
        domain, at = dns.get("baseDomain"), (*place, "dns")
        zone = names.private_zone_id(domain) if names and isinstance(domain, str) else INVALID
        follow(dns, "privateZoneID", zone, at, (*at, "baseDomain"))


def _group(dns: object) -> object:
    """Resource group of the public zone; `INVALID` if there is none, which is refused at its own place."""
    try:
        return parse_arm_id(str(dns["publicZoneID"])).resource_group if isinstance(dns, dict) else INVALID
    except (KeyError, ValueError):
        return INVALID
