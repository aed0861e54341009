"""A local Azure in memory for tests: principals with roles, and callers that speak HTTP to ARM and to the vaults."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.azure.arm.api import app as arm_app
from localcloud.azure.arm.managedidentity import IDENTITIES
from localcloud.azure.authorization import built_in_roles
from localcloud.azure.keyvault.api import app as keyvault_app
from localcloud.azure.local_azure import LocalAzure, assemble
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.azure.shared.held import FaultHolder, HeldFaults
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core.clouds import LOCAL_SUBSCRIPTION_ID
from localcloud.core.store import Document
from localcloud.testing.azure import ask, open_store, send

SUBSCRIPTION = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}"
GROUP = f"{SUBSCRIPTION}/resourceGroups/identity-local"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv-idstack-local"
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/mgmt"
OWNER_ROLES = ("Contributor", "User Access Administrator", "Key Vault Secrets Officer")


class ArmWorld:
    """One subscription with the group `identity-local`, and a deployer who may do everything the stack does."""

    def __init__(self, folder: Path, faults: Faults = NO_DELAYS) -> None:
        self.store = open_store(folder / "state.sqlite")
        self._held_faults = folder / "held-faults.json"
        holder = FaultHolder(self._held_faults)
        self.store.fail_writes(holder.disk_error)
        self.cloud: LocalAzure = assemble(self.store, faults, authority_host="https://localhost:8443/", holder=holder)
        self.resources = Resources(self.store)
        self.arm = arm_app(self.cloud)
        self.keyvault = keyvault_app(self.cloud)
        self.group("identity-local")
        self.deployer = self.principal(*((role, SUBSCRIPTION) for role in OWNER_ROLES))

    def hold(self, **members: Any) -> None:
        """Hold these members of `HeldFaults` and no others; none at all ends it."""
        self._held_faults.write_text(HeldFaults(**members).to_json(), encoding="utf-8")

    def principal(self, *grants: tuple[str, str]) -> ServicePrincipal:
        """A service principal with the given (role name or GUID, scope)s, in effect since long."""
        application = self.cloud.directory.create_application("someone")
        principal = self.cloud.directory.create_service_principal(application.app_id)
        for role, scope in grants:
            self.grant(principal, role, scope)
        return principal

    def grant(self, principal: ServicePrincipal, role: str, scope: str, *, since: str = "2026-01-01T00:00:00Z") -> str:
        """A role assignment put there behind ARM's back; returns its id."""
        guid = next(guid for guid, built_in_role in built_in_roles().items() if role in (guid, built_in_role.role_name))
        definition = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{guid}"
        assignment_id = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}"
        properties = {
            "principalId": principal.object_id,
            "principalType": "ServicePrincipal",
            "roleDefinitionId": definition,
            "scope": scope,
            "createdOn": since,
        }
        self.put(assignment_id, "Microsoft.Authorization/roleAssignments", properties)
        return assignment_id

    def assign(
        self,
        name: str = ONE,
        principal_id: str | None = None,
        role: str = READER,
        scope: str = GROUP,
        *,
        caller: ServicePrincipal | None = None,
        **properties: Any,
    ) -> httpx.Response:
        """A role assignment through ARM, to a new principal if none is named; a property given as None is left out."""
        wanted = {
            "principalId": principal_id or self.principal().object_id,
            "principalType": "ServicePrincipal",
            "roleDefinitionId": f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{role}",
            **properties,
        }
        path = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
        return self.call("PUT", path, {"properties": _stated(wanted)}, caller=caller)

    def managed_identity(self, name: str) -> ServicePrincipal:
        """A user-assigned identity, put there behind ARM's back."""
        resource_id = f"{GROUP}/providers/{IDENTITIES}/{name}"
        principal = self.cloud.directory.create_managed_identity(resource_id, name)
        self.put(resource_id, IDENTITIES, {"principalId": principal.object_id, "clientId": principal.app_id})
        return principal

    def attach(self, *principals: ServicePrincipal) -> None:
        """Make these identities the only ones of the node."""
        kind = "Microsoft.Compute/virtualMachineScaleSets"
        attached: dict[str, Any] = {str(principal.resource_id): {} for principal in principals}
        scale_set = {"id": f"{GROUP}/providers/{kind}/nodes", "name": "nodes", "type": kind}
        self.resources.put({**scale_set, "identity": {"userAssignedIdentities": attached}})

    def group(self, name: str) -> str:
        """A resource group; returns its id."""
        group_id = f"{SUBSCRIPTION}/resourceGroups/{name}"
        self.put(group_id, "Microsoft.Resources/resourceGroups", {"provisioningState": "Succeeded"})
        return group_id

    def put(self, resource_id: str, type_name: str, properties: dict[str, Any]) -> Document:
        """Any resource, put there behind ARM's back."""
        name = resource_id.rpartition("/")[2]
        return self.resources.put(
            {"id": resource_id, "name": name, "type": type_name, "location": "eastus", "properties": properties}
        )

    def call(self, method: str, path: str, body: object = None, **options: Any) -> httpx.Response:
        """`request`, awaited."""
        return asyncio.run(self.request(method, path, body, **options))

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        caller: ServicePrincipal | None = None,
        version: str | None = "2024-11-01",
        **query: str,
    ) -> httpx.Response:
        """One request to ARM, by the deployer unless another caller is named; `query`: further query parameters."""
        token = self.cloud.tokens.issue(caller or self.deployer, "https://management.azure.com")
        params = {"api-version": version, **query} if version else query
        return await send(self.arm, "https://management.azure.com", method, path, token=token, params=params, json=body)

    def vault(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        caller: ServicePrincipal | None = None,
        host: str = "kv-idstack-local.vault.azure.net",
    ) -> httpx.Response:
        """One request to a vault's data plane, by the deployer unless another caller is named."""
        token = self.cloud.tokens.issue(caller or self.deployer, "https://vault.azure.net")
        params = {"api-version": "7.4"}
        return ask(self.keyvault, f"https://{host}", method, path, token=token, params=params, json=body)

    def create_vault(self, **properties: Any) -> Document:
        """The stack's vault, made through ARM; `properties` over the ones a vault needs."""
        answer = self.call("PUT", VAULT, vault_body(**properties))
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())


def _stated(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if value is not None}


def vault_body(**properties: Any) -> dict[str, Any]:
    """What a PUT of a vault sends; a property given as None is left out."""
    wanted = {
        "tenantId": "10ca1000-0000-4000-8000-000000000001",
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        **properties,
    }
    return {"location": "eastus", "properties": _stated(wanted)}


def cluster_body(**properties: Any) -> dict[str, Any]:
    """What a PUT of a managed cluster sends; a property given as None is left out."""
    wanted = {
        "dnsPrefix": "mgmt",
        "agentPoolProfiles": [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 3}],
        "aadProfile": {"managed": True, "enableAzureRBAC": True},
        "disableLocalAccounts": True,
        "addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": True, "config": {"rotationPollInterval": "2m"}}},
        **properties,
    }
    return {"location": "eastus", "identity": {"type": "SystemAssigned"}, "properties": _stated(wanted)}


def storage_account_body(**properties: Any) -> dict[str, Any]:
    """What a PUT of a storage account sends, whose containers may be public."""
    wanted = {"allowBlobPublicAccess": True, "allowSharedKeyAccess": False, **properties}
    return {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": wanted}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ArmWorld]:
    """A local Azure without delays."""
    built = ArmWorld(tmp_path)
    yield built
    built.store.close()


@pytest.fixture
def vault(world: ArmWorld) -> ArmWorld:
    """A world with the stack's vault."""
    world.create_vault()
    return world


def error(answer: httpx.Response) -> tuple[int, str, str]:
    """(status, code, message) of a refusal."""
    content = answer.json()["error"]
    return answer.status_code, content["code"], content["message"]
