"""`HsmRoleAssignmentResource`: a role in a managed HSM, which assigns its roles itself, in its own data plane.

Sources: Key Vault REST 7.4 (Role Assignments), azure-docs `key-vault/managed-hsm/role-management` (scopes) and
`built-in-roles`. The deployer needs a role of the HSM that writes role assignments (Managed HSM Policy Administrator).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypedDict

from identity.azure.client import AzureClient
from identity.plugin_schema import HsmRoleAssignmentInputs
from plugin import PluginError
from provider import cloud
from provider.resource import TypedResource, plugin_errors

_DEFINITIONS: Final = "Microsoft.KeyVault/providers/Microsoft.Authorization/roleDefinitions"


class _Grant(TypedDict):
    roleDefinition: str
    principalId: str


class HsmRoleAssignmentResource(TypedResource[HsmRoleAssignmentInputs[str], Mapping[str, Any]]):
    """Every change is another assignment, and a name can have only one."""

    inputs = HsmRoleAssignmentInputs
    replacing = frozenset(HsmRoleAssignmentInputs.__annotations__)
    delete_before_replace = True
    no_import = "it needs no import. Remove it, and the next `up` takes over an assignment that has its name"

    def make(self, urn: str, inputs: HsmRoleAssignmentInputs[str]) -> tuple[str, Mapping[str, Any]]:
        """Assign the role, unless an interrupted run has assigned it."""
        assigned = _found(inputs)
        wanted: _Grant = {"roleDefinition": inputs["roleDefinition"], "principalId": inputs["principalId"]}
        if assigned is not None and assigned != wanted:
            raise PluginError(
                f"{_address(inputs)} is another assignment: role {assigned['roleDefinition']} of "
                f"{assigned['principalId']}. Delete it, if nobody needs it"
            )
        if assigned is None:
            definition = f"{_DEFINITIONS}/{inputs['roleDefinition']}"
            grant = {"roleDefinitionId": definition, "principalId": inputs["principalId"]}
            _send(inputs, "PUT", {"properties": grant})
        return _address(inputs), {}

    def live(self, urn: str, inputs: HsmRoleAssignmentInputs[str]) -> _Grant | None:
        """Role and principal as the HSM has them."""
        return _found(inputs)

    def remove(self, urn: str, id: str, inputs: HsmRoleAssignmentInputs[str], outputs: Mapping[str, Any]) -> None:
        """Remove the assignment."""
        _send(inputs, "DELETE", None)


def _found(inputs: HsmRoleAssignmentInputs[str]) -> _Grant | None:
    """Role and principal of the assignment in the HSM, None if there is none."""
    answer = _send(inputs, "GET", None)
    if answer is None:
        return None
    properties = answer["properties"]
    definition = str(properties["roleDefinitionId"]).rpartition("/")[2]
    return {"roleDefinition": definition, "principalId": str(properties["principalId"])}


def _send(inputs: HsmRoleAssignmentInputs[str], verb: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
    azure: AzureClient = cloud.client(inputs["cloud"], inputs["tenantId"])
    fix = (
        ". The deployer needs the HSM's role Managed HSM Policy Administrator (`az keyvault role assignment create "
        f'--hsm-name {inputs["hsm"]} --role "Managed HSM Policy Administrator" --scope / --assignee <deployer>`)'
    )
    with plugin_errors(f"the role in the managed HSM {inputs['hsm']} could not be {_DONE[verb]}", fix):
        return azure.managed_hsm(inputs["hsm"], verb, _path(inputs), body)


_DONE: Final = {"GET": "read", "PUT": "assigned", "DELETE": "removed"}


def _path(inputs: HsmRoleAssignmentInputs[str]) -> str:
    return f"{inputs['scope']}/providers/Microsoft.Authorization/roleAssignments/{inputs['name']}"


def _address(inputs: HsmRoleAssignmentInputs[str]) -> str:
    return f"{inputs['hsm']}{_path(inputs)}"
