"""The places where an identity needs the actions of its role: its hosted cluster's resources where it has roles.

Azure/ARO-HCP compares the actions of an identity's role with its rights at network security group, network, subnet,
route table and NAT gateway before it creates a cluster (`backend/pkg/utils/validationutils`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from identity.naming import resource_group_id, split_arm_id
from ops.world.expected import ExpectedAccess, ExpectedRole

_NETWORK: Final = ("vnetID", "subnetID", "securityGroupID")
# The suffix of the assignment at a DNS zone's resource group, and the type whose actions it needs there.
_ZONES: Final = ("-dns", "Microsoft.Network/dnsZones")


def accesses(roles: Sequence[ExpectedRole], spec: Mapping[str, Any]) -> tuple[ExpectedAccess, ...]:
    """The places of one principal, each once; `spec` is the identity part of its HostedCluster."""
    azure = spec.get("platform", {}).get("azure", {})
    return tuple({access.scope.lower(): access for access in _accesses(roles, azure)}.values())


def _accesses(roles: Sequence[ExpectedRole], azure: Mapping[str, Any]) -> Iterator[ExpectedAccess]:
    managed = resource_group_id(azure.get("subscriptionID", ""), azure.get("resourceGroup", "")).lower()
    for role in roles:
        if role.resource.endswith(_ZONES[0]):
            yield ExpectedAccess(principal_id=role.principal_id, scope=role.scope, type=_ZONES[1])
        elif "/providers/" in role.scope:
            yield ExpectedAccess(principal_id=role.principal_id, scope=role.scope, type=split_arm_id(role.scope).type)
        elif role.scope.lower() == managed:
            yield ExpectedAccess(principal_id=role.principal_id, scope=role.scope, type="")
        for arm_id in (azure[key] for key in _NETWORK if key in azure):
            if arm_id.lower().startswith(f"{role.scope.lower()}/"):
                yield ExpectedAccess(principal_id=role.principal_id, scope=arm_id, type=split_arm_id(arm_id).type)
