"""Resource ids of the types that the configuration names, checked down to the names in them.

Sources: HyperShift's CRD (api/hypershift/v1beta1/azure.go:428-438; zones: hostedcluster_types.go:1156-1191) and Azure's
naming rules (learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules).
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from identity.naming import RESOURCE_GROUP_PATTERN, resource_id, split_arm_id
from identity.settings.schema.schema_node import PLACEHOLDER, ZERO_UUID, ValueSpec, uuid

_SPELLINGS: Final[dict[str, str]] = {}


def canonical(text: str) -> str:
    """An id with Azure's own letter case in all but the names; any other text, or type of resource, as it is.

    Azure compares without case, a reader of ids may not: the ingress operator knows `Microsoft.Network/dnszones` and
    `Microsoft.Network/privateDnsZones` only (openshift/cluster-ingress-operator, `pkg/dns/azure/client/client.go`).
    """
    try:
        arm_id = split_arm_id(text)
    except ValueError:
        return text
    if (type := _SPELLINGS.get(arm_id.type.lower())) is None:
        return text
    return resource_id(arm_id.subscription, arm_id.resource_group, type, *arm_id.names)


def _arm_id(
    rule: str,
    type: str,
    command: str,
    *patterns: str,
    longest: int = 255,
    own_name: str = "<name>",
    options: str = "-g <group> ",
) -> ValueSpec:
    """The ids of a resource type with a pattern for every name in them; `az <command> show` prints such a resource."""
    provider, *segments = type.split("/")
    _SPELLINGS[type.lower()] = type

    def check(text: str) -> str:
        if len(text) > longest:
            raise ValueError(f"{len(text)} characters")
        try:
            arm_id = split_arm_id(text)
        except ValueError:
            raise ValueError from None
        if arm_id.type.lower() != type.lower():
            raise ValueError(f"the id of a {arm_id.type}")
        if arm_id.subscription == ZERO_UUID:
            raise ValueError(f"the subscription is {PLACEHOLDER}")
        uuid(arm_id.subscription)
        for what, pattern, name in zip(
            ("resource group", *segments),
            (RESOURCE_GROUP_PATTERN, *patterns),
            (arm_id.resource_group, *arm_id.names),
            strict=True,
        ):
            if not re.fullmatch(pattern, name, re.ASCII):
                raise ValueError(f'"{name}" is not a valid name in {what}')
        return canonical(text)

    path = "/".join(f"{segment}/{own_name}" for segment in segments)
    return ValueSpec(
        rule=rule,
        accepted=f"a resource id /subscriptions/<id>/resourceGroups/<name>/providers/{provider}/{path}",
        blank="<resource id>",
        check=check,
        hint=f"`az {command} show {options}-n {own_name} --query id` prints it",
    )


_VNET_NAME: Final = r"[a-zA-Z0-9][\w.-]{0,62}\w"
_SUBNET_NAME: Final = r"[a-zA-Z0-9]([\w.-]{0,78}\w)?"
VnetId = Annotated[str, _arm_id("vnet-id", "Microsoft.Network/virtualNetworks", "network vnet", _VNET_NAME)]
SubnetId = Annotated[
    str,
    _arm_id(
        "subnet-id",
        "Microsoft.Network/virtualNetworks/subnets",
        "network vnet subnet",
        *(_VNET_NAME, _SUBNET_NAME),
        longest=355,
        options="-g <group> --vnet-name <name> ",
    ),
]
SecurityGroupId = Annotated[
    str, _arm_id("security-group-id", "Microsoft.Network/networkSecurityGroups", "network nsg", _SUBNET_NAME)
]
RouteTableId = Annotated[
    str, _arm_id("route-table-id", "Microsoft.Network/routeTables", "network route-table", _SUBNET_NAME)
]
NatGatewayId = Annotated[
    str, _arm_id("nat-gateway-id", "Microsoft.Network/natGateways", "network nat gateway", _SUBNET_NAME)
]
_ZONE_NAME: Final = r"[\w-]{1,63}(\.[\w-]{1,63}){1,33}"
DnsZoneId = Annotated[
    str,
    _arm_id(
        "dns-zone-id", "Microsoft.Network/dnszones", "network dns zone", _ZONE_NAME, longest=258, own_name="<domain>"
    ),
]
PrivateDnsZoneId = Annotated[
    str,
    _arm_id(
        "private-dns-zone-id",
        "Microsoft.Network/privateDnsZones",
        "network private-dns zone",
        _ZONE_NAME,
        longest=265,
        own_name="<domain>",
    ),
]
ManagedIdentityId = Annotated[
    str,
    _arm_id(
        "managed-identity-id",
        "Microsoft.ManagedIdentity/userAssignedIdentities",
        "identity",
        r"[a-zA-Z0-9][a-zA-Z0-9_-]{2,127}",
        longest=345,
    ),
]
StorageAccountId = Annotated[
    str, _arm_id("storage-account-id", "Microsoft.Storage/storageAccounts", "storage account", r"[a-z0-9]{3,24}")
]
RegistryId = Annotated[
    str,
    _arm_id("registry-id", "Microsoft.ContainerRegistry/registries", "acr", r"[a-zA-Z0-9]{5,50}", options=""),
]
