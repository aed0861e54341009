"""The Key Vault as it is asked for, and the identity with which the CSI driver reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.azure.vault import ExistingIdentity, KeyVaultUser, NewIdentity
from tests.unit import cases
from tests.unit.components import world
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.simulation import a_uuid
from tests.unit.components.world import ADD_ON, ROLES, SUBNET, VAULT, key_vault, lookups, settings


def built(**changes: Any) -> RecordingMonitor:
    return run(lambda: key_vault(**changes))


VAULT_TYPE = "azure-native:keyvault:Vault"


def test_access_is_by_role_and_what_is_deleted_can_be_recovered() -> None:
    open_to = {"defaultAction": "Deny", "allowedIpRanges": ["203.0.113.0/28"], "allowedSubnetIds": [SUBNET]}
    recorder = built(**open_to)

    expected = cases.read(Path(__file__).with_name("inputs.yaml"), vars(world))["vault"]
    assert recorder.one(VAULT_TYPE, "vault-vault").inputs == expected
    assert recorder.outputs_of("vault") == {
        "vault_name": "kv-idstack-dev",
        "vault_id": VAULT,
        "vault_uri": "https://kv-idstack-dev.vault.azure.net/",
    }


def test_purge_protection_and_public_access_can_be_switched_off() -> None:
    properties = built(purgeProtection=False, publicNetworkAccess=False).one(VAULT_TYPE).inputs["properties"]

    assert "enablePurgeProtection" not in properties
    assert properties["publicNetworkAccess"] == "Disabled"


IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
GIVEN = ExistingIdentity(client_id="a-client-id", object_id="an-object-id")


def built_user(identity: ExistingIdentity | NewIdentity) -> RecordingMonitor:
    def build() -> None:
        KeyVaultUser("key-vault-user", settings(), key_vault(), identity, "an-owner-id")

    return run(build)


def created(node_resource_group: str | None) -> RecordingMonitor:
    return built_user(NewIdentity(name="kv-user", node_resource_group=node_resource_group))


def test_it_may_read_the_secrets_of_this_vault_and_nothing_wider() -> None:
    recorder = built_user(GIVEN)
    role = recorder.one(ASSIGNMENT, "key-vault-user-roles-vault")

    assert role.inputs == {
        "roleAssignmentName": "a3cd9953-e742-5410-b88b-e2dbc451f742",
        "scope": VAULT,
        # Key Vault Secrets User
        "roleDefinitionId": f"{ROLES}/4633458b-17de-408a-b874-0445c86b69e6",
        "principalId": "an-object-id",
        "principalType": "ServicePrincipal",
    }
    assert recorder.waits_for(role, recorder.one("azure-native:keyvault:Vault"))
    assert recorder.all(IDENTITY) == []
    assert recorder.outputs_of("key-vault-user") == {"client_id": "a-client-id", "principal_id": "an-object-id"}


def test_a_created_identity_gets_the_role_and_a_command_that_attaches_it() -> None:
    recorder = created("MC_aks")

    assert recorder.one(IDENTITY, "key-vault-user-identity").inputs == {
        "resourceName": "kv-user",
        "resourceGroupName": "identity-dev",
        "location": "eastus",
        "tags": {"team": "identity", "idstack-stack": "idstack:test", "idstack-owner": "an-owner-id"},
    }
    assert recorder.one(ASSIGNMENT).inputs["principalId"] == a_uuid("key-vault-user-identity", "principal")
    outputs = recorder.outputs_of("key-vault-user")
    assert outputs["client_id"] == a_uuid("key-vault-user-identity", "client")
    assert outputs["attach_command"] == (
        "az vmss list --resource-group 'MC_aks' --query '[].name' --output tsv | xargs -I NAME "
        "az vmss identity assign --resource-group 'MC_aks' --name NAME --identities '/identities/kv-user'"
    )
    without_cluster = created(None).outputs_of("key-vault-user")["attach_command"]
    assert without_cluster.count("--resource-group '<the nodes' resource group>'") == 2


@pytest.mark.parametrize(
    ("given", "client_id", "object_id"),
    [
        (None, ADD_ON["clientId"], ADD_ON["objectId"]),
        (
            {
                "source": "existing",
                "clientId": "cccccccc-0000-4000-8000-000000000001",
                "objectId": "cccccccc-0000-4000-8000-000000000002",
            },
            "cccccccc-0000-4000-8000-000000000001",
            "cccccccc-0000-4000-8000-000000000002",
        ),
        (
            {"source": "created", "name": "kv-user"},
            a_uuid("key-vault-user-identity", "client"),
            a_uuid("key-vault-user-identity", "principal"),
        ),
    ],
    ids=["the add-on's by default", "an existing one", "one to create"],
)
def test_the_configuration_says_which_identity_it_is(
    program: Program, given: dict[str, str] | None, client_id: str, object_id: str
) -> None:
    cluster = lookups(getManagedCluster={"nodeResourceGroup": "MC_aks"}) if given else lookups()
    recorder = program(hostedClusters=[], keyVaultUser=given, invokes=cluster)
    outputs = recorder.stack_outputs.values

    assert (outputs["keyVaultUserClientId"], recorder.one(ASSIGNMENT).inputs["principalId"]) == (client_id, object_id)
    assert "keyVaultUserObjectId" not in outputs, "it is for roles on single secrets"
    if given and given["source"] == "created":
        assert "--resource-group 'MC_aks'" in outputs["keyVaultUserAttachCommand"]


def test_with_single_secrets_it_may_read_each_and_nothing_else(program: Program) -> None:
    recorder = program(keyVaultUserScope="secrets")
    roles = [resource for resource in recorder.all(ASSIGNMENT) if resource.inputs["principalId"] == ADD_ON["objectId"]]
    written = {resource.inputs["secretName"]: resource for resource in recorder.all("idstack:index:CredentialSecret")}

    assert {assignment.inputs["scope"] for assignment in roles} == {f"{VAULT}/secrets/{name}" for name in written}
    assert {assignment.inputs["roleDefinitionId"] for assignment in roles} == {
        f"{ROLES}/4633458b-17de-408a-b874-0445c86b69e6"
    }
    for role in roles:
        name = role.inputs["scope"].rpartition("/")[2]
        mounted = recorder.one(
            "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass", _class_of(recorder, name)
        )
        assert recorder.waits_for(role, written[name])
        assert recorder.waits_for(mounted, role)
    assert recorder.stack_outputs.values["keyVaultUserObjectId"] == ADD_ON["objectId"]


def _class_of(recorder: RecordingMonitor, secret: str) -> str:
    """Name of the SecretProviderClass that mounts the secret."""
    [found] = [
        resource.name
        for resource in recorder.all("kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass")
        if secret in json.dumps(resource.inputs)
    ]
    return found
