"""Resource ids of the types that the configuration names, checked down to the names in them.

Sources: HyperShift's CRD (api/hypershift/v1beta1/azure.go:428-438; zones: hostedcluster_types.go:1156-1191) and Azure's
naming rules (learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final

from identity.naming import RESOURCE_GROUP_PATTERN, RESOURCE_NAME_PATTERN, ArmId, split_arm_id
from identity.settings.schema.value_spec import PLACEHOLDER, ZERO_UUID, ValueSpec, uuid


@dataclass(frozen=True)
class _ArmType:
    rule: str
    type: str
    # Of each name in the id, in order.
    names: tuple[str, ...]
    longest: int
    example: str
    hint: str

    def check(self, text: str) -> str:
        if len(text) > self.longest:
            raise ValueError(f"{len(text)} characters")
        arm_id = self._parsed(text)
        if arm_id.type.lower() != self.type.lower():
            raise ValueError(f"the id of a {arm_id.type}")
        if arm_id.subscription == ZERO_UUID:
            raise ValueError(f"the subscription is {PLACEHOLDER}")
        uuid(arm_id.subscription)
        for what, pattern, name in zip(
            ("resource group", *self.type.split("/")[1:]),
            (RESOURCE_GROUP_PATTERN, *self.names),
            (arm_id.resource_group, *arm_id.names),
            strict=True,
        ):
            if not re.fullmatch(pattern, name, re.ASCII):
                raise ValueError(f'"{name}" is no name in {what}')
        return text

    @staticmethod
    def _parsed(text: str) -> ArmId:
        try:
            return split_arm_id(text)
        except ValueError:
            raise ValueError from None

    @property
    def spec(self) -> ValueSpec:
        return ValueSpec(
            rule=self.rule,
            accepted=f"a resource id /subscriptions/<id>/resourceGroups/<name>/providers/{self.example}",
            blank="<resource id>",
            check=self.check,
            hint=f"`{self.hint} --query id` prints it",
        )


_VNET_NAME: Final = r"[a-zA-Z0-9][\w.-]{0,62}\w"
_SUBNET_NAME: Final = r"[a-zA-Z0-9]([\w.-]{0,78}\w)?"
VnetId = Annotated[
    str,
    _ArmType(
        "vnet-id",
        "Microsoft.Network/virtualNetworks",
        (_VNET_NAME,),
        255,
        "Microsoft.Network/virtualNetworks/<name>",
        "az network vnet show -g <group> -n <name>",
    ).spec,
]
SubnetId = Annotated[
    str,
    _ArmType(
        "subnet-id",
        "Microsoft.Network/virtualNetworks/subnets",
        (_VNET_NAME, _SUBNET_NAME),
        355,
        "Microsoft.Network/virtualNetworks/<name>/subnets/<name>",
        "az network vnet subnet show -g <group> --vnet-name <name> -n <name>",
    ).spec,
]
SecurityGroupId = Annotated[
    str,
    _ArmType(
        "security-group-id",
        "Microsoft.Network/networkSecurityGroups",
        (_SUBNET_NAME,),
        255,
        "Microsoft.Network/networkSecurityGroups/<name>",
        "az network nsg show -g <group> -n <name>",
    ).spec,
]
RouteTableId = Annotated[
    str,
    _ArmType(
        "route-table-id",
        "Microsoft.Network/routeTables",
        (_SUBNET_NAME,),
        255,
        "Microsoft.Network/routeTables/<name>",
        "az network route-table show -g <group> -n <name>",
    ).spec,
]
NatGatewayId = Annotated[
    str,
    _ArmType(
        "nat-gateway-id",
        "Microsoft.Network/natGateways",
        (_SUBNET_NAME,),
        255,
        "Microsoft.Network/natGateways/<name>",
        "az network nat gateway show -g <group> -n <name>",
    ).spec,
]
_ZONE_NAME: Final = r"[\w-]{1,63}(\.[\w-]{1,63}){1,33}"
DnsZoneId = Annotated[
    str,
    _ArmType(
        "dns-zone-id",
        "Microsoft.Network/dnsZones",
        (_ZONE_NAME,),
        258,
        "Microsoft.Network/dnsZones/<domain>",
        "az network dns zone show -g <group> -n <domain>",
    ).spec,
]
PrivateDnsZoneId = Annotated[
    str,
    _ArmType(
        "private-dns-zone-id",
        "Microsoft.Network/privateDnsZones",
        (_ZONE_NAME,),
        265,
        "Microsoft.Network/privateDnsZones/<domain>",
        "az network private-dns zone show -g <group> -n <domain>",
    ).spec,
]
ManagedIdentityId = Annotated[
    str,
    _ArmType(
        "managed-identity-id",
        "Microsoft.ManagedIdentity/userAssignedIdentities",
        (r"[a-zA-Z0-9][a-zA-Z0-9_-]{2,127}",),
        345,
        "Microsoft.ManagedIdentity/userAssignedIdentities/<name>",
        "az identity show -g <group> -n <name>",
    ).spec,
]
StorageAccountId = Annotated[
    str,
    _ArmType(
        "storage-account-id",
        "Microsoft.Storage/storageAccounts",
        (r"[a-z0-9]{3,24}",),
        255,
        "Microsoft.Storage/storageAccounts/<name>",
        "az storage account show -g <group> -n <name>",
    ).spec,
]
WorkspaceId = Annotated[
    str,
    _ArmType(
        "workspace-id",
        "Microsoft.OperationalInsights/workspaces",
        (r"[a-zA-Z0-9]([a-zA-Z0-9-]{2,61})[a-zA-Z0-9]",),
        255,
        "Microsoft.OperationalInsights/workspaces/<name>",
        "az monitor log-analytics workspace show -g <group> -n <name>",
    ).spec,
]
ActionGroupId = Annotated[
    str,
    _ArmType(
        "action-group-id",
        "Microsoft.Insights/actionGroups",
        (rf"(?=.{{1,260}}$)(?!.*\.$){RESOURCE_NAME_PATTERN}",),
        455,
        "Microsoft.Insights/actionGroups/<name>",
        "az monitor action-group show -g <group> -n <name>",
    ).spec,
]
RegistryId = Annotated[
    str,
    _ArmType(
        "registry-id",
        "Microsoft.ContainerRegistry/registries",
        (r"[a-zA-Z0-9]{5,50}",),
        255,
        "Microsoft.ContainerRegistry/registries/<name>",
        "az acr show -n <name>",
    ).spec,
]
