"""`HsmRoleAssignmentResource`: a role in a managed HSM, which assigns its roles itself, in its own data plane.

Sources: Key Vault REST 7.4 (Role Assignments), azure-docs `key-vault/managed-hsm/role-management` (scopes) and
`built-in-roles`. The deployer needs a role of the HSM that writes role assignments (Managed HSM Policy Administrator).
"""

from __future__ import annotations

from typing import Any, Final

from identity.azure.client import AzureClient
from identity.azure.errors import AccessError
from plugin import (
    Checked,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    ReadResult,
    Resource,
    diff_properties,
    unwrap,
)
from provider import cloud, schema
from provider.inputs import Inputs

_PLACE: Final = ("cloud", "tenantId", "hsm", "scope", "name")
_GRANT: Final = ("roleDefinition", "principalId")
_DEFINITIONS: Final = "Microsoft.KeyVault/providers/Microsoft.Authorization/roleDefinitions"


class HsmRoleAssignmentResource(Resource):
    """Inputs, which are the outputs as well: `cloud` (name), `tenantId`; `hsm` (name), `scope` (`/keys/<key>`)
    and `name` (GUID) of the assignment; `roleDefinition` (GUID) and `principalId` (object id of a service principal).
    """

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate."""
        inputs = Inputs(unwrap(new))
        for name in (*_PLACE, *_GRANT):
            inputs.string(name)
        if old is not None:
            schema.require(old)
        return Checked(schema.marked(new), inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every change is another assignment, and a name can have one only."""
        changes = diff_properties(old_inputs, new_inputs)
        replaced = {
            path: PropertyChange(each.kind, replace=path in (*_PLACE, *_GRANT)) for path, each in changes.items()
        }
        return Diff(replaced, delete_before_replace=True)

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Assign the role. One that is there already, after a run that was cut short, is this one."""
        if preview:
            return Created("", dict(inputs))
        grant = {"roleDefinitionId": f"{_DEFINITIONS}/{inputs['roleDefinition']}", "principalId": inputs["principalId"]}
        found = _found(inputs)
        if found is not None and found != _grant(inputs):
            raise PluginError(
                f"{_address(inputs)} is another assignment: role {found['roleDefinition']} of {found['principalId']}. "
                "Delete it, if nobody needs it"
            )
        if found is None:
            _send(inputs, "PUT", {"properties": grant})
        return Created(_address(inputs), dict(inputs))

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """The assignment as the HSM has it; raises PluginError for an import."""
        if not state:
            raise PluginError(
                f"{urn.rsplit('::', 1)[-1]} cannot be imported: it needs no import. "
                "Remove it, and the next `up` takes over an assignment that has its name"
            )
        found = _found(inputs)
        return None if found is None else ReadResult(id, inputs | found, state | found)

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Keep the inputs: nothing of an assignment changes in place."""
        return dict(new_inputs)

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Take the role away; one that is gone already is as good."""
        _send(inputs, "DELETE", None)


def _grant(inputs: Props) -> Props:
    return {name: inputs[name] for name in _GRANT}


def _found(inputs: Props) -> Props | None:
    """Role and principal of the assignment in the HSM, None if there is none."""
    answer = _send(inputs, "GET", None)
    if answer is None:
        return None
    properties = answer["properties"]
    definition = str(properties["roleDefinitionId"]).rpartition("/")[2]
    return {"roleDefinition": definition, "principalId": str(properties["principalId"])}


def _send(inputs: Props, verb: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
    azure: AzureClient = cloud.client(inputs["cloud"], inputs["tenantId"])
    try:
        return azure.managed_hsm(inputs["hsm"], verb, _path(inputs), body)
    except AccessError as error:
        raise PluginError(
            f"the role in the managed HSM {inputs['hsm']} could not be {_DONE[verb]}: {error}. The deployer needs the "
            "HSM's role Managed HSM Policy Administrator (`az keyvault role assignment create --hsm-name "
            f'{inputs["hsm"]} --role "Managed HSM Policy Administrator" --scope / --assignee <deployer>`)'
        ) from None


_DONE: Final = {"GET": "read", "PUT": "assigned", "DELETE": "removed"}


def _path(inputs: Props) -> str:
    return f"{inputs['scope']}/providers/Microsoft.Authorization/roleAssignments/{inputs['name']}"


def _address(inputs: Props) -> str:
    return f"{inputs['hsm']}{_path(inputs)}"
