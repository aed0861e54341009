"""The keys of a hosted cluster's domains and zones."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from identity.settings.schema import arm_ids, types
from identity.settings.schema.base import FilledIn, Model


class DnsSettings(Model):
    """`spec.dns` of the HostedCluster: the domain of its applications, and the zones of their records."""

    base_domain: types.DomainName = Field(
        description="Domain below which the cluster has its own, `<name>.<baseDomain>`."
    )
    public_zone_id: arm_ids.DnsZoneId | None = Field(
        None,
        alias="publicZoneID",
        description="DNS zone of the public records; it exists already. Required for the exported `infra.json` and for "
        "a HostedCluster that the stack writes, and with `infrastructure: create`.",
    )
    private_zone_id: Annotated[
        arm_ids.PrivateDnsZoneId | None,
        FilledIn("none; with `infrastructure: create` `<name>.<baseDomain>` in `<name>-<infraID>`"),
    ] = Field(
        None,
        alias="privateZoneID",
        description="Private DNS zone of the records inside of the network, linked to it. Required as `publicZoneID` "
        "is.",
    )
