"""The keys of the private access to a hosted cluster's API server: `spec.platform.azure.private`.

Source: openshift/hypershift at 3ee9615, api/hypershift/v1beta1/azure.go:711-810.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from identity.settings.schema import arm_ids, types
from identity.settings.schema.base import Model

Topology: TypeAlias = Literal["Public", "PublicAndPrivate", "Private"]


class PrivateLinkSettings(Model):
    """Access by Azure Private Link."""

    nat_subnet_id: arm_ids.SubnetId | None = Field(
        None,
        alias="natSubnetID",
        description="Subnet of the Private Link Service's addresses; without it HyperShift makes one in the cluster's "
        "network.",
    )
    additional_allowed_subscriptions: tuple[types.SubscriptionId, ...] = Field(
        (), description="Further subscriptions that may make private endpoints; the cluster's own always may."
    )


class SwiftSettings(Model):
    """Access by Azure Swift pod networking."""

    pod_network_instance: types.PodNetworkInstance = Field(
        description="PodNetworkInstance in the namespace of the hosted control plane."
    )


class PrivateSettings(Model):
    """How the API server is reached privately."""

    type: Literal["PrivateLink", "Swift"] = Field(
        description="`Swift` for a managed cluster (`docs/reference/hosted-clusters.md`); a HostedCluster never "
        "changes it."
    )
    private_link: PrivateLinkSettings | None = Field(None, description="Keys of `PrivateLink`.")
    swift: SwiftSettings | None = Field(None, description="Keys of `Swift`.")
