"""The script that creates an Azure DevOps project's service connections, environments and pipeline with `az`.

`az` needs its extension azure-devops. Sources: learn.microsoft.com/azure/devops, "Manually set workload identity
service connections", and its REST API ("Endpoints - Create", "Environments - Add", "Check Configurations - Add").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ops.outputs.azure_rights import Purpose
from ops.pipelines.azure import QUIET, TEXT, PipelineIdentity, line
from ops.pipelines.stack import PipelineStack

PIPELINE: Final = ".azuredevops/azure-pipelines.yml"
_HOST: Final = "https://dev.azure.com"
# The check for approvals of an environment ("Check Configurations - Add").
_APPROVAL: Final = {"id": "8c6f20a7-a545-4486-9777-f762fafe0d4d", "name": "Approval"}
_MINUTES: Final = 43_200  # as long as a check may wait: 30 days
# Limits a service connection to jobs of the branch main, whatever another branch's pipeline contains.
_ON_MAIN: Final = {
    "type": {"id": "fe1de3ee-a436-41b4-bb20-f6eb4cb879a7", "name": "Task Check"},
    "settings": {
        "displayName": "Branch control",
        "definitionRef": {
            "id": "86b05a0c-73e6-4f7d-b3cf-e38f3b39a75b",
            "name": "evaluatebranchProtection",
            "version": "0.0.1",
        },
        "inputs": {"allowedBranches": "refs/heads/main", "ensureProtectionOfBranch": "true"},
    },
    "resource": {"type": "endpoint", "id": "CONNECTION"},
    "timeout": _MINUTES,
}


def script(project: str, stacks: Sequence[PipelineStack], group: str, reviewers: Sequence[str]) -> str:
    """The script of `<organization>/<project>`; `reviewers` are the mail addresses of users who approve."""
    organization, _, name = project.partition("/")
    return "\n".join(_lines(organization, name, stacks, group, reviewers)) + "\n"


def _lines(
    organization: str, project: str, stacks: Sequence[PipelineStack], group: str, reviewers: Sequence[str]
) -> Iterator[str]:
    where = ("--organization", f"{_HOST}/{organization}", "--project", project)
    yield "set -eu"
    yield "body=$(mktemp)\ntrap 'rm -f \"$body\"' EXIT"
    yield line("az", "group", "create", "--name", group, "--location", stacks[0].settings.location, *QUIET)
    shown = ("az", "devops", "project", "show", "--organization", where[1], "--project", project, "--query", "id")
    yield f"project_id=$({line(*shown, *TEXT)})"
    yield "# who approves"
    yield "approvers="
    for reviewer in reviewers:
        user = line(
            "az", "devops", "user", "show", "--organization", where[1], "--user", reviewer, "--query", "id", *TEXT
        )
        yield f'approvers="${{approvers:+$approvers,}}{{\\"id\\":\\"$({user})\\"}}"'
    for stack in stacks:
        yield from _approval(stack, where)
        for purpose in (Purpose.READER, Purpose.DEPLOYER):
            yield from _identity(PipelineIdentity(stack, purpose, group), where, project)
    yield from _pipeline(stacks, where)


def _approval(stack: PipelineStack, where: tuple[str, ...]) -> Iterator[str]:
    """The environment with its check for approvals, unless it exists."""
    name = f"{stack.name}-approval"
    yield f"\n# {stack.name}: who approves"
    area = ("distributedtask", "environments")
    yield f"environment=$({_invoke(area, where, 'value[0].id', f'name={name}')})"
    yield 'if [ "${environment:-None}" = None ]; then'
    yield f"  {_written({'name': name})}"
    yield f"  environment=$({_invoke(area, where, 'id')})"
    check = {
        "type": _APPROVAL,
        "settings": {"approvers": ["APPROVERS"], "requesterCannotBeApprover": True},
        "resource": {"type": "environment", "id": "ENVIRONMENT"},
        "timeout": _MINUTES,
    }
    yield f"  {_written(check)}"
    yield f"  {_invoke(('PipelinesChecks', 'configurations'), where, 'id')} >/dev/null"
    yield "fi"


def _identity(identity: PipelineIdentity, where: tuple[str, ...], project: str) -> Iterator[str]:
    """The identity with its service connection; Azure DevOps generates issuer and subject."""
    settings, name = identity.stack.settings, identity.name
    yield f"\n# {identity.stack.name}: the {identity.purpose}"
    yield from identity.created()
    endpoint = ("az", "devops", "service-endpoint")
    yield f"connection=$({line(*endpoint, 'list', *where, '--query', f'[?name==`{name}`].id', *TEXT)})"
    yield 'if [ -z "$connection" ]; then'
    connection = {
        "name": name,
        "type": "azurerm",
        "url": "https://management.azure.com/",
        "authorization": {
            "scheme": "WorkloadIdentityFederation",
            "parameters": {"tenantid": settings.tenant_id, "serviceprincipalid": "CLIENT_ID"},
        },
        "data": {
            "environment": "AzureCloud",
            "scopeLevel": "Subscription",
            "subscriptionId": settings.subscription_id,
            "subscriptionName": settings.subscription_id,
            "creationMode": "Manual",
        },
        "serviceEndpointProjectReferences": [{"projectReference": {"id": "PROJECT_ID", "name": project}, "name": name}],
    }
    yield f"  {_written(connection)}"
    create = line(*endpoint, "create", *where, "--query", "id", *TEXT)
    yield f'  connection=$({create} --service-endpoint-configuration "$body")'
    if identity.purpose is Purpose.DEPLOYER:
        yield f"  {_written(_ON_MAIN)}"
        yield f"  {_invoke(('PipelinesChecks', 'configurations'), where, 'id')} >/dev/null"
    yield "fi"
    for variable, key in (
        ("issuer", "workloadIdentityFederationIssuer"),
        ("subject", "workloadIdentityFederationSubject"),
    ):
        query = line("--query", f"authorization.parameters.{key}", *TEXT)
        yield f'{variable}=$({line(*endpoint, "show", *where)} --id "$connection" {query})'
    yield identity.trusted("azure-devops", '"$issuer"', '"$subject"')
    yield from identity.granted()


def _pipeline(stacks: Sequence[PipelineStack], where: tuple[str, ...]) -> Iterator[str]:
    """The list of stacks for the pipeline's file, which Azure DevOps reads before any variable of the project."""
    yield f"\n# {PIPELINE}: put this list into its parameter `stacks`"
    yield from (f"#   - {{name: {stack.name}, backend: {json.dumps(stack.backend)}}}" for stack in stacks)
    yield f"# Then: {line('az', 'pipelines', 'create', '--name', 'idstack', '--yaml-path', PIPELINE, *where)}"


def _invoke(area: tuple[str, str], where: tuple[str, ...], query: str, search: str | None = None) -> str:
    """A call of the REST API: a search, or a POST of the file `$body`."""
    organization, project = where[1], where[3]
    names = ("--organization", organization, "--route-parameters", f"project={project}", "--api-version", "7.1-preview")
    words = line("az", "devops", "invoke", "--area", area[0], "--resource", area[1], *names, "--query", query, *TEXT)
    if search is not None:
        return f"{words} {line('--query-parameters', search)}"
    return f'{words} --http-method POST --in-file "$body"'


# Placeholders in a body, and their shell variables.
_VARIABLES: Final = {
    '"APPROVERS"': "$approvers",
    '"ENVIRONMENT"': '"$environment"',
    '"CONNECTION"': '"$connection"',
    '"CLIENT_ID"': '"$client_id"',
    '"PROJECT_ID"': '"$project_id"',
}


def _written(body: Mapping[str, Any]) -> str:
    """A line that writes a body to the file."""
    text = json.dumps(body).replace("\\", "\\\\").replace("$", "\\$")
    for word, variable in _VARIABLES.items():
        text = text.replace(word, variable)
    quoted = text.replace('"', '\\"')
    return f'printf %s "{quoted}" > "$body"'
