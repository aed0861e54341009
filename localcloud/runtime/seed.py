"""Creates what exists in the local subscription before any stack: what stacks look up and do not create.

Idempotent: what is there stays as it is. The names are those of `Pulumi.local.yaml`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from localcloud.apiserver.apply import Administrator
from localcloud.azure.arm import containerregistry
from localcloud.azure.authorization import built_in_roles
from localcloud.azure.blob.accounts import ACCOUNTS, BLOB_SERVICES, CONTAINERS
from localcloud.azure.keyvault.keys import Keys
from localcloud.azure.keyvault.vaults import Vaults
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.msi.issuer import issue_credential
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.people import DEPLOYERS
from localcloud.core import clock
from localcloud.core.arm_ids import resource_group_id, resource_id, role_definition_id, subscription_id
from localcloud.core.cluster import ClusterKind
from localcloud.core.store import Document
from localcloud.core.tls import write_private
from localcloud.kubernetes.definitions import definitions
from localcloud.runtime.environment import Prepared
from localcloud.runtime.network_seed import (
    DNS_GROUP,
    MANAGED_GROUP,
    NETWORK_GROUP,
    SECURITY_GROUP,
    infrastructure,
)

LOCATION: Final = "eastus"
SHARED_GROUP: Final = "identity-local"
AKS_GROUP: Final = "aks-local"
AKS: Final = "aks-mgmt-local"
NODE_GROUP: Final = f"MC_{AKS_GROUP}_{AKS}_{LOCATION}"
ADDON_IDENTITY: Final = f"azurekeyvaultsecretsprovider-{AKS}"
RESOURCE_GROUPS: Final = (
    SHARED_GROUP,
    MANAGED_GROUP,
    NETWORK_GROUP,
    SECURITY_GROUP,
    DNS_GROUP,
    AKS_GROUP,
    NODE_GROUP,
)
BACKUP_ACCOUNT: Final = "backuplocal"
BACKUP_CONTAINER: Final = "etcd"
REGISTRY: Final = "idstacklocal"
ETCD_VAULT: Final = "kv-etcd-local"
ETCD_KEY: Final = "hc1-etcd"
ETCD_KEY_VERSION: Final = "0123456789abcdef0123456789abcdef"
IMPORTED_IDENTITY: Final = "hc1-image-registry"
DEVELOPER: Final = "developer@idstack.local"
_DEPLOYER_ROLES: Final = ("Contributor", "User Access Administrator", "Key Vault Secrets Officer")
_SINCE: Final = timedelta(days=1)  # seeded role assignments have long taken effect


def seed(prepared: Prepared) -> int:
    """Create everything that is missing; returns the number of resources created.

    Raises `apiserver.apply.NotApplied` when kube-apiserver does not run or refuses a definition of a custom kind.
    """
    seeder = _Seeder(prepared.cloud)
    with prepared.store.transaction():
        seeder.groups()
        seeder.network()
        seeder.management_cluster()
        seeder.etcd_vault()
        seeder.backup_storage()
        seeder.registry()
        imported = seeder.managed_identity(SHARED_GROUP, IMPORTED_IDENTITY)
        seeder.people(prepared.environment.deployer_client_id)
        seeder.deployer_roles(prepared.environment.deployer_client_id)
    credential = issue_credential(prepared.cloud, imported["id"])
    file = prepared.state.msi / f"{IMPORTED_IDENTITY}.json"
    if not file.exists() or file.read_text() != credential:
        write_private(file, credential.encode())
    if prepared.cluster is ClusterKind.API_SERVER:
        with Administrator(prepared.state.administrator_kubeconfig) as administrator:
            seeder.added += administrator.apply(definitions())
            administrator.wait_until_served(definitions())
    return seeder.added


class _Seeder:
    def __init__(self, cloud: LocalAzure) -> None:
        self.added = 0
        self._cloud = cloud
        self._subscription = cloud.subscription_id
        self._resources = Resources(cloud.store)

    def groups(self) -> None:
        for name in RESOURCE_GROUPS:
            group = resource_group_id(self._subscription, name)
            self._ensure(group, "Microsoft.Resources/resourceGroups", {"provisioningState": "Succeeded"})

    def network(self) -> None:
        for each in infrastructure(self._subscription, LOCATION):
            found = self._ensure(each.id, each.type, each.properties, location=each.location, sku=each.sku)
            if each.location is None and found["properties"] != each.properties:
                # A subnet that an earlier release has seeded, without its security group.
                self._resources.put({**found, "properties": each.properties})

    def management_cluster(self) -> None:
        """An AKS cluster whose Key Vault add-on's identity is attached to the nodes, so that IMDS issues its tokens."""
        cluster = "Microsoft.ContainerService/managedClusters"
        scale_set = "Microsoft.Compute/virtualMachineScaleSets"
        addon = self.managed_identity(NODE_GROUP, ADDON_IDENTITY)
        ids = addon["properties"]
        self._ensure(
            self._id(NODE_GROUP, scale_set, "aks-nodepool1-local-vmss"),
            scale_set,
            {"provisioningState": "Succeeded"},
            identity={
                "type": "UserAssigned",
                "userAssignedIdentities": {
                    addon["id"]: {"clientId": ids["clientId"], "principalId": ids["principalId"]},
                },
            },
        )
        profile = {
            "enabled": True,
            "config": {"enableSecretRotation": "true", "rotationPollInterval": "2m"},
            "identity": {
                "clientId": ids["clientId"],
                "objectId": ids["principalId"],
                "resourceId": addon["id"],
            },
        }
        self._ensure(
            self._id(AKS_GROUP, cluster, AKS),
            cluster,
            {
                "provisioningState": "Succeeded",
                "powerState": {"code": "Running"},
                "nodeResourceGroup": NODE_GROUP,
                "addonProfiles": {"azureKeyvaultSecretsProvider": profile},
                "aadProfile": {"managed": True, "enableAzureRBAC": False, "tenantID": self._cloud.tenant_id},
                "disableLocalAccounts": True,
            },
        )

    def etcd_vault(self) -> None:
        """The vault with the key that the hosted cluster's etcd is encrypted with."""
        vaults = Vaults(self._resources)
        vault = vaults.named(ETCD_VAULT)
        if vault is None:
            vault = vaults.put(
                {
                    "id": self._id(SHARED_GROUP, "Microsoft.KeyVault/vaults", ETCD_VAULT),
                    "name": ETCD_VAULT,
                    "type": "Microsoft.KeyVault/vaults",
                    "location": LOCATION,
                    "tags": {},
                    "seeded": True,
                    "properties": {
                        "tenantId": self._cloud.tenant_id,
                        "sku": {"family": "A", "name": "standard"},
                        "accessPolicies": [],
                        "enableRbacAuthorization": True,
                        "enableSoftDelete": True,
                        "softDeleteRetentionInDays": 90,
                        "enablePurgeProtection": True,
                        "publicNetworkAccess": "Enabled",
                        "vaultUri": f"https://{ETCD_VAULT}.vault.azure.net/",
                        "provisioningState": "Succeeded",
                    },
                }
            )
            self.added += 1
        Keys(self._cloud.store).add(vault, ETCD_KEY, version=ETCD_KEY_VERSION)

    def backup_storage(self) -> None:
        """The storage account of backups, with a container."""
        account = self._id(SHARED_GROUP, ACCOUNTS, BACKUP_ACCOUNT)
        self._ensure(account, ACCOUNTS, _succeeded({}))
        service = f"{account}/blobServices/default"
        self._ensure(service, BLOB_SERVICES, {}, location=None)
        container = f"{service}/containers/{BACKUP_CONTAINER}"
        self._ensure(container, CONTAINERS, {"publicAccess": "None"}, location=None)

    def registry(self) -> None:
        """The container registry of the nodes' images."""
        registry = self._id(SHARED_GROUP, containerregistry.REGISTRIES, REGISTRY)
        self._ensure(registry, containerregistry.REGISTRIES, _succeeded({"loginServer": f"{REGISTRY}.azurecr.io"}))

    def managed_identity(self, group: str, name: str) -> Document:
        """A user-assigned identity with its principal."""
        identities = "Microsoft.ManagedIdentity/userAssignedIdentities"
        identity = self._id(group, identities, name)
        current = self._resources.get(identity)
        if current is not None:
            return current
        principal = self._cloud.directory.create_managed_identity(identity, name)
        ids = {
            "tenantId": self._cloud.tenant_id,
            "principalId": principal.object_id,
            "clientId": principal.app_id,
        }
        return self._ensure(identity, identities, ids)

    def people(self, deployer: str) -> None:
        """A developer, and the group that the management cluster's role is bound to."""
        principal = self._cloud.directory.service_principal_by_app(deployer)
        if principal is None:
            raise LookupError(f"no service principal {deployer}")
        developer = self._cloud.people.create_user(DEVELOPER, "Developer")
        self._cloud.people.create_group(
            "aks-deployers", [principal.object_id, developer.object_id], object_id=DEPLOYERS
        )

    def deployer_roles(self, client_id: str) -> None:
        """The roles on the subscription with which a pipeline deploys stacks."""
        principal = self._cloud.directory.service_principal_by_app(client_id)
        if principal is None:
            raise LookupError(f"no service principal {client_id}")
        scope = subscription_id(self._subscription)
        since = (clock.now() - _SINCE).isoformat()
        guids = {role.role_name: guid for guid, role in built_in_roles().items()}
        for role in _DEPLOYER_ROLES:
            name = uuid.uuid5(uuid.NAMESPACE_DNS, f"{principal.object_id}-{role}")
            properties = {
                "principalId": principal.object_id,
                "principalType": "ServicePrincipal",
                "roleDefinitionId": role_definition_id(self._subscription, guids[role]),
                "scope": scope,
                "description": None,
                "condition": None,
                "conditionVersion": None,
                "createdOn": since,
                "updatedOn": since,
                "createdBy": "",
                "updatedBy": "",
            }
            assignments = "Microsoft.Authorization/roleAssignments"
            self._ensure(f"{scope}/providers/{assignments}/{name}", assignments, properties, location=None)

    def _ensure(
        self,
        full_id: str,
        type_name: str,
        properties: Mapping[str, Any],
        *,
        location: str | None = LOCATION,
        identity: Mapping[str, Any] | None = None,
        sku: Mapping[str, str] | None = None,
    ) -> Document:
        """The resource, written unless it is there."""
        current = self._resources.get(full_id)
        if current is not None:
            return current
        resource: Document = {"id": full_id, "name": full_id.rpartition("/")[2], "type": type_name, "seeded": True}
        if location is not None:
            resource |= {"location": location, "tags": {}}
        if identity is not None:
            resource["identity"] = dict(identity)
        if sku is not None:
            resource["sku"] = dict(sku)
        self.added += 1
        return self._resources.put({**resource, "properties": dict(properties)})

    def _id(self, group: str, type_name: str, name: str) -> str:
        return resource_id(self._subscription, group, type_name, name)


def _succeeded(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {**properties, "provisioningState": "Succeeded"}
