"""Inputs of azure-native's types, as the program gives them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from emulated.azure_native.provider import AzureNative
from localcloud.core.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from localcloud.testing.plugins import create
from plugin import Created, Props, Secret

Unique = Callable[[str], str]

VAULT: Final = "azure-native:keyvault:Vault"
SECRET: Final = "azure-native:keyvault:Secret"
IDENTITY: Final = "azure-native:managedidentity:UserAssignedIdentity"
CREDENTIAL: Final = "azure-native:managedidentity:FederatedIdentityCredential"
ASSIGNMENT: Final = "azure-native:authorization:RoleAssignment"
ACCOUNT: Final = "azure-native:storage:StorageAccount"
GROUP: Final = "azure-native:resources:ResourceGroup"
NETWORK: Final = "azure-native:network:VirtualNetwork"
SUBNET: Final = "azure-native:network:Subnet"
SECURITY_GROUP: Final = "azure-native:network:NetworkSecurityGroup"
ADDRESS: Final = "azure-native:network:PublicIPAddress"
BALANCER: Final = "azure-native:network:LoadBalancer"
ZONE: Final = "azure-native:privatedns:PrivateZone"
LINK: Final = "azure-native:privatedns:VirtualNetworkLink"

ROLES: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/providers/Microsoft.Authorization/roleDefinitions"
IN_GROUP: Final[Props] = {"resourceGroupName": "identity-local"}
_HERE: Final[Props] = {**IN_GROUP, "location": "eastus"}
_GLOBAL: Final[Props] = {**IN_GROUP, "location": "global"}


def vault_inputs(name: str, **properties: Any) -> Props:
    wanted = {
        "tenantId": LOCAL_TENANT_ID,
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        **properties,
    }
    return {**_HERE, "vaultName": name, "properties": wanted}


def identity_inputs(name: str) -> Props:
    return {**_HERE, "resourceName": name}


def assignment_inputs(principal: str) -> Props:
    return {
        "scope": f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/hc1-managed",
        "roleAssignmentName": str(uuid.uuid4()),
        "principalId": principal,
        "principalType": "ServicePrincipal",
        "roleDefinitionId": f"{ROLES}/acdd72a7-3385-48ef-bd42-f606fba81ae7",
    }


def least(plugin: AzureNative, token: str, unique: Unique) -> Props:
    """The least that the type needs; what it lies in or refers to is made on the way."""

    def made(needed: str) -> tuple[Props, Created]:
        return create(plugin, needed, least(plugin, needed, unique))

    match token.rpartition(":")[2]:
        case "Vault":
            return vault_inputs(unique("kv"))
        case "Secret":
            vault, _ = made(VAULT)
            secret: Props = {"secretName": "one", "properties": {"value": Secret("marker")}}
            return {**IN_GROUP, "vaultName": vault["vaultName"], **secret}
        case "StorageAccount":
            account = {"accountName": unique("st").replace("-", "")[:24], "kind": "StorageV2"}
            return {**_HERE, **account, "sku": {"name": "Standard_LRS"}}
        case "BlobContainer":
            account, _ = made(ACCOUNT)
            return {**IN_GROUP, "accountName": account["accountName"], "containerName": "one"}
        case "UserAssignedIdentity":
            return identity_inputs(unique("mi"))
        case "FederatedIdentityCredential":
            identity, _ = made(IDENTITY)
            trust = {"issuer": "https://issuer.example.com", "subject": "s", "audiences": ["openshift"]}
            name = {"federatedIdentityCredentialResourceName": "one"}
            return {**IN_GROUP, "resourceName": identity["resourceName"], **name, **trust}
        case "RoleAssignment":
            me = plugin.invoke("azure-native:authorization:getClientConfig", {})["objectId"]
            return assignment_inputs(me)
        case "ManagedCluster":
            cluster = unique("aks")
            return {
                **_HERE,
                "resourceName": cluster,
                "dnsPrefix": cluster,
                "agentPoolProfiles": [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}],
                "aadProfile": {"managed": True},
                "addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": True}},
                "oidcIssuerProfile": {"enabled": True},
                "identity": {"type": "SystemAssigned"},
                "windowsProfile": {"adminUsername": "azureuser", "adminPassword": Secret("marker")},
                "servicePrincipalProfile": {"clientId": "msi", "secret": Secret("marker")},
            }
        case "ResourceGroup":
            return {"resourceGroupName": unique("group"), "location": "eastus"}
        case "VirtualNetwork":
            return {**_HERE, "virtualNetworkName": unique("vnet"), "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}
        case "Subnet":
            network, _ = made(NETWORK)
            _, group = made(SECURITY_GROUP)
            subnet = {"subnetName": "default", "addressPrefix": "10.0.0.0/24", "networkSecurityGroup": {"id": group.id}}
            return {**IN_GROUP, "virtualNetworkName": network["virtualNetworkName"], **subnet}
        case "NetworkSecurityGroup":
            return {**_HERE, "networkSecurityGroupName": unique("nsg")}
        case "PublicIPAddress":
            standard = {"sku": {"name": "Standard"}, "publicIPAllocationMethod": "Static"}
            return {**_HERE, "publicIpAddressName": unique("address"), **standard}
        case "LoadBalancer":
            _, address = made(ADDRESS)
            frontend = {"name": "infra", "publicIPAddress": {"id": address.id}}
            return {
                **_HERE,
                "loadBalancerName": unique("balancer"),
                "sku": {"name": "Standard"},
                "frontendIPConfigurations": [frontend],
                "backendAddressPools": [{"name": "infra"}],
                "probes": [{"name": "infra", "protocol": "Http", "port": 30595, "requestPath": "/healthz"}],
            }
        case "PrivateZone":
            return {**_GLOBAL, "privateZoneName": f"{unique('hc')}.example.com"}
        case _:
            zone, _ = made(ZONE)
            _, linked = made(NETWORK)
            names = {"privateZoneName": zone["privateZoneName"], "virtualNetworkLinkName": unique("link")}
            return {**_GLOBAL, **names, "virtualNetwork": {"id": linked.id}, "registrationEnabled": False}
