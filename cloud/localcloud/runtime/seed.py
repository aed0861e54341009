"""Creates the seed: what exists in the local subscription from the start. Existing resources stay unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from localcloud.azure.arm.keyvault import checked_properties
from localcloud.azure.keyvault.keys import Keys
from localcloud.azure.keyvault.secrets import VAULTS, Vaults
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.msi.issuer import issue_credential
from localcloud.azure.resource_store import Resources
from localcloud.core.arm_ids import in_lower_case, resource_group_id, resource_id
from localcloud.core.files import write_private
from localcloud.core.store import Document
from localcloud.runtime.environment import Prepared, role_assignment
from localcloud.runtime.seed_file import DEPLOYER, Seed, SeededCluster, SeededIdentity, SeededVault

_IDENTITIES: Final = "Microsoft.ManagedIdentity/userAssignedIdentities"


def seed(prepared: Prepared) -> int:
    """Create everything that is missing; returns the number of resources created. Raises `StoreError`."""
    wanted = prepared.seed
    seeder = _Seeder(prepared.cloud, wanted, prepared.environment.deployer_client_id)
    with prepared.store.transaction():
        seeder.groups()
        seeder.resources()
        seeder.clusters()
        seeder.vaults()
        identities = [seeder.managed_identity(identity) for identity in wanted.managed_identities]
        seeder.people()
        seeder.deployer_roles()
    for wanted_identity, identity in zip(wanted.managed_identities, identities, strict=True):
        if wanted_identity.credential:
            credential = issue_credential(prepared.cloud, identity["id"])
            file = prepared.state.msi / f"{wanted_identity.name}.json"
            if not file.exists() or file.read_text() != credential:
                write_private(file, credential.encode())
    return seeder.added


class _Seeder:
    def __init__(self, cloud: LocalAzure, seed: Seed, deployer: str) -> None:
        self.added = 0
        self._cloud = cloud
        self._seed = seed
        self._subscription = cloud.subscription_id
        self._resources = Resources(cloud.store)
        principal = cloud.directory.service_principal_by_app(deployer)
        if principal is None:
            raise LookupError(f"no service principal {deployer}")
        self._deployer = principal.object_id

    def groups(self) -> None:
        nodes = ((self._node_group(cluster), "") for cluster in self._seed.clusters)
        for name, location in (*((group.name, group.location or "") for group in self._seed.resource_groups), *nodes):
            group = resource_group_id(self._subscription, name)
            properties = {"provisioningState": "Succeeded"}
            self._ensure(group, "Microsoft.Resources/resourceGroups", properties, location=location)

    def resources(self) -> None:
        for resource in self._seed.resources:
            is_child = "/" in resource.name
            location = resource.location or (None if is_child else self._seed.location)
            full_id = self._id(resource.resource_group, resource.type, *resource.name.split("/"))
            document = self._ensure(
                full_id,
                resource.type,
                resource.properties,
                location=location,
                identity=resource.identity,
                sku=resource.sku,
            )
            if location is None and document["properties"] != resource.properties:
                # The seed has changed, for instance a subnet's security group.
                self._resources.put({**document, "properties": resource.properties})

    def clusters(self) -> None:
        for cluster in self._seed.clusters:
            self._cluster(cluster)

    def _node_group(self, cluster: SeededCluster) -> str:
        return f"MC_{cluster.resource_group}_{cluster.name}_{self._seed.location}"

    def _cluster(self, seeded: SeededCluster) -> None:
        """An AKS cluster whose Key Vault add-on's identity is attached to the nodes, so that IMDS issues its tokens."""
        cluster = "Microsoft.ContainerService/managedClusters"
        scale_set = "Microsoft.Compute/virtualMachineScaleSets"
        nodes = self._node_group(seeded)
        addon = self.managed_identity(
            SeededIdentity(name=f"azurekeyvaultsecretsprovider-{seeded.name}", resource_group=nodes)
        )
        ids = addon["properties"]
        attached = [
            addon,
            *(self.managed_identity(identity) for identity in self._seed.managed_identities if identity.on_nodes),
        ]
        self._ensure(
            self._id(nodes, scale_set, "aks-nodepool1-local-vmss"),
            scale_set,
            {"provisioningState": "Succeeded"},
            identity={
                "type": "UserAssigned",
                "userAssignedIdentities": {
                    identity["id"]: {name: identity["properties"][name] for name in ("clientId", "principalId")}
                    for identity in attached
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
            self._id(seeded.resource_group, cluster, seeded.name),
            cluster,
            {
                "provisioningState": "Succeeded",
                "powerState": {"code": "Running"},
                "nodeResourceGroup": nodes,
                "addonProfiles": {"azureKeyvaultSecretsProvider": profile},
                "aadProfile": {"managed": True, "enableAzureRBAC": False, "tenantID": self._cloud.tenant_id},
                "disableLocalAccounts": True,
                "networkProfile": {"networkPlugin": "azure", "networkPolicy": seeded.network_policy},
            },
        )

    def vaults(self) -> None:
        vaults, keys = Vaults(self._resources), Keys(self._cloud.store)
        for seeded_vault in self._seed.vaults:
            vault = vaults.named(seeded_vault.name)
            if vault is None:
                vault = vaults.put(self._vault(seeded_vault))
                self.added += 1
            for key in seeded_vault.keys:
                keys.add(vault, key.name, version=key.version)

    def _vault(self, seeded: SeededVault) -> Document:
        asked = {
            "tenantId": self._cloud.tenant_id,
            "sku": {"family": "A", "name": "standard"},
            "enableRbacAuthorization": True,
            "enablePurgeProtection": True,
        }
        return {
            "id": self._id(seeded.resource_group, VAULTS, seeded.name),
            "name": seeded.name,
            "type": VAULTS,
            "location": self._seed.location,
            "tags": {},
            "seeded": True,
            "properties": checked_properties(asked, None, seeded.name),
        }

    def managed_identity(self, seeded: SeededIdentity) -> Document:
        identity = in_lower_case(self._id(seeded.resource_group, _IDENTITIES, seeded.name))
        current = self._resources.get(identity)
        if current is not None:
            return current
        principal = self._cloud.directory.create_managed_identity(
            identity, seeded.name, client_id=seeded.client_id, object_id=seeded.object_id
        )
        ids = {
            "tenantId": self._cloud.tenant_id,
            "principalId": principal.object_id,
            "clientId": principal.app_id,
        }
        return self._ensure(identity, _IDENTITIES, ids)

    def people(self) -> None:
        people = self._cloud.people
        users = [people.create_user(user.user_principal_name, user.display_name) for user in self._seed.users]
        ids = {DEPLOYER: self._deployer, **{user.user_principal_name: user.object_id for user in users}}
        for group in self._seed.groups:
            people.create_group(
                group.display_name, [ids[member] for member in group.members], object_id=group.object_id
            )

    def deployer_roles(self) -> None:
        """The roles on the subscription with which a pipeline deploys stacks."""
        for entry in self._seed.deployer_roles:
            role, condition = (entry, None) if isinstance(entry, str) else (entry.role, entry.condition)
            assignment = role_assignment(self._subscription, self._deployer, role, condition)
            self._ensure(assignment["id"], assignment["type"], assignment["properties"], location=None)

    def _ensure(
        self,
        full_id: str,
        type_name: str,
        properties: Mapping[str, Any],
        *,
        location: str | None = "",
        identity: Mapping[str, Any] | None = None,
        sku: Mapping[str, str] | None = None,
    ) -> Document:
        """The resource, created if it is missing; the location "" is the seed's, None means no location."""
        current = self._resources.get(full_id)
        if current is not None:
            return current
        resource: Document = {"id": full_id, "name": full_id.rpartition("/")[2], "type": type_name, "seeded": True}
        if location is not None:
            resource |= {"location": location or self._seed.location, "tags": {}}
        if identity is not None:
            resource["identity"] = dict(identity)
        if sku is not None:
            resource["sku"] = dict(sku)
        self.added += 1
        return self._resources.put({**resource, "properties": dict(properties)})

    def _id(self, group: str, type_name: str, *names: str) -> str:
        return resource_id(self._subscription, group, type_name, *names)
