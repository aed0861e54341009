"""The identities of a stack's pipelines in Azure, with their federations and roles, as lines for a shell.

Every line may run again: `az identity create` and `az identity federated-credential create` overwrite the existing
resource, and `az role assignment create` prints an existing assignment.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from identity.azure.pipeline_token import AUDIENCE
from identity.naming import subscription_id
from ops.outputs.azure_rights import Purpose, rights
from ops.pipelines.stack import PipelineStack

QUIET: Final = ("--output", "none")
TEXT: Final = ("--output", "tsv")
# A placeholder for the shell's variable in lines with quoted words.
_OBJECT_ID: Final = "OBJECT_ID"
# Reads the state's key and decrypts with it; no built-in role does so without encrypting, too.
_STATE_READER: Final = "idstack state reader"
_STATE_READER_ACTIONS: Final = ("Microsoft.KeyVault/vaults/keys/read", "Microsoft.KeyVault/vaults/keys/decrypt/action")
# Roles on the container of the state and on its key, by purpose (docs/guides/pull-requests.md).
_STATE_ROLES: Final = {
    Purpose.DEPLOYER: ("Storage Blob Data Contributor", "Key Vault Crypto User"),
    Purpose.READER: ("Storage Blob Data Reader", _STATE_READER),
}
# Microsoft Graph, and its application permission Application.ReadWrite.OwnedBy (Graph permissions reference).
_GRAPH: Final = "https://graph.microsoft.com/v1.0/servicePrincipals"
_GRAPH_APP_ID: Final = "00000003-0000-0000-c000-000000000000"
_WRITE_OWNED_ID: Final = "18a4783c-866b-4cc7-a460-3d5e5662c884"


@dataclass(frozen=True)
class PipelineIdentity:
    """A user-assigned identity of a pipeline: of a stack, for one purpose, in the resource group of the pipelines."""

    stack: PipelineStack
    purpose: Purpose
    group: str

    @property
    def environment(self) -> str:
        """The environment of its jobs: `<stack>`, or `<stack>-preview`."""
        return self.stack.name if self.purpose is Purpose.DEPLOYER else f"{self.stack.name}-preview"

    @property
    def name(self) -> str:
        """Name of the identity."""
        return f"idstack-{self.environment}"

    def created(self) -> Iterator[str]:
        """Lines that create the identity, and set the variables `client_id` and `object_id`."""
        who = ("--resource-group", self.group, "--name", self.name)
        where = ("--location", self.stack.settings.location)
        yield line("az", "identity", "create", *who, *where, *QUIET)
        for variable, query in (("client_id", "clientId"), ("object_id", "principalId")):
            yield f"{variable}=$({line('az', 'identity', 'show', *who, '--query', query, *TEXT)})"

    def trusted(self, name: str, issuer: str, subject: str) -> str:
        """A line that lets tokens sign in as the identity; `issuer` and `subject` are quoted words of a shell."""
        create = line("az", "identity", "federated-credential", "create", "--resource-group", self.group)
        names = line("--identity-name", self.name, "--name", name, "--audiences", AUDIENCE, *QUIET)
        return f"{create} {names} --issuer {issuer} --subject {subject}"

    def granted(self) -> Iterator[str]:
        """Lines that give the identity its rights, in Azure, on the state and in Entra ID."""
        roles = rights(self.stack.settings, self.purpose).commands(_OBJECT_ID, "ServicePrincipal")
        yield from map(_quiet, roles.splitlines())
        yield from self._granted_on_state()
        if self.purpose is Purpose.DEPLOYER:
            yield from _permission()
            if self.stack.settings.makes_cluster_sides:
                yield (
                    "# on the management cluster: the output of `idstack rbac <object id> --principal-type "
                    f"ServicePrincipal --stack {self.stack.name}`"
                )

    def _granted_on_state(self) -> Iterator[str]:
        stack = self.stack
        on_container, on_key = _STATE_ROLES[self.purpose]
        yield "# the container of the state"
        account = line("az", "storage", "account", "show", "--name", stack.account, "--query", "id", *TEXT)
        yield f"scope=$({account})/blobServices/default/containers/{stack.container}"
        yield _on_scope(on_container)
        yield "# the key that encrypts what is secret in the state"
        vault = line("az", "keyvault", "show", "--name", stack.vault, "--query", "id", *TEXT)
        yield f"scope=$({vault})/keys/{stack.key}"
        if on_key == _STATE_READER:
            yield from _state_reader(stack.settings.subscription_id)
        yield _on_scope(on_key)


def line(*words: str) -> str:
    """A line for a shell, with quoted words."""
    return shlex.join(words)


def _quiet(text: str) -> str:
    """A line of `idstack rbac --azure` with the object id of the identity."""
    if text.startswith("#"):
        return text
    return f"{text} {line(*QUIET)}".replace(f" {_OBJECT_ID} ", ' "$object_id" ')


def _on_scope(role: str) -> str:
    assign = line("az", "role", "assignment", "create", "--role", role, *QUIET)
    return f'{assign} --scope "$scope" --assignee-object-id "$object_id" --assignee-principal-type ServicePrincipal'


def _state_reader(subscription: str) -> Iterator[str]:
    """The custom role, unless it exists: Azure refuses a second one with its name."""
    definition = {
        "Name": _STATE_READER,
        "Description": "Decrypts what is secret in the state of a stack.",
        "Actions": [],
        "DataActions": list(_STATE_READER_ACTIONS),
        "AssignableScopes": [subscription_id(subscription)],
    }
    known = line("az", "role", "definition", "list", "--name", _STATE_READER, "--query", "[].name", *TEXT)
    create = line("az", "role", "definition", "create", "--role-definition", json.dumps(definition), *QUIET)
    yield f'[ -n "$({known})" ] || {create}'


def _permission() -> Iterator[str]:
    """Graph's permission for the stack's applications, unless it is granted: Graph refuses a second grant."""
    yield "# Microsoft Graph: Application.ReadWrite.OwnedBy"
    rest = "az rest --method"
    graph = line("--url", f"{_GRAPH}(appId='{_GRAPH_APP_ID}')?$select=id", "--query", "id", *TEXT)
    yield f"graph=$({rest} GET {graph})"
    known = line("--query", f"value[?appRoleId=='{_WRITE_OWNED_ID}'].id", *TEXT)
    # The shell expands its variables between the quotes of the JSON.
    body = (
        f'{{\\"principalId\\":\\"$object_id\\",\\"resourceId\\":\\"$graph\\",\\"appRoleId\\":\\"{_WRITE_OWNED_ID}\\"}}'
    )
    assignments = f'"{_GRAPH}/$object_id/appRoleAssignments"'
    yield (
        f'[ -n "$({rest} GET --url {assignments} {known})" ] || '
        f'{rest} POST --url {assignments} --body "{body}" {line(*QUIET)}'
    )
