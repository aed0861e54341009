"""The script that creates a GitHub repository's environments, variables and identities with `az` and `gh`.

Sources: docs.github.com, "REST API endpoints for deployment environments", "... for deployment branch policies" and
"OpenID Connect reference".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from ops.outputs.azure_rights import Purpose
from ops.pipelines.azure import QUIET, PipelineIdentity, line
from ops.pipelines.stack import PipelineStack

_ISSUER: Final = "https://token.actions.githubusercontent.com"
_MAIN: Final = {"protected_branches": False, "custom_branch_policies": True}
STACKS_VARIABLE: Final = "IDSTACK_STACKS"


def script(repository: str, stacks: Sequence[PipelineStack], group: str, reviewers: Sequence[str]) -> str:
    """The script; `reviewers` are users, or teams as `<org>/<team>`, who approve changes of a stack.

    The variable with the stacks comes last, because it enables the workflows.
    """
    return "\n".join(_lines(repository, stacks, group, reviewers)) + "\n"


def _lines(repository: str, stacks: Sequence[PipelineStack], group: str, reviewers: Sequence[str]) -> Iterator[str]:
    yield "set -eu"
    yield line("az", "group", "create", "--name", group, "--location", stacks[0].settings.location, *QUIET)
    yield "# the names by which newer repositories are known to Entra ID, with their ids"
    by_ids = '"\\(.owner.login)@\\(.owner.id)/\\(.name)@\\(.id)"'
    yield f"by_ids=$({line('gh', 'api', f'repos/{repository}', '--jq', by_ids)})"
    yield "# who approves"
    yield "reviewers="
    for reviewer in reviewers:
        kind, path = ("Team", _team(reviewer)) if "/" in reviewer else ("User", f"users/{reviewer}")
        query = f'"{{\\"type\\":\\"{kind}\\",\\"id\\":\\(.id)}}"'
        yield f'reviewers="${{reviewers:+$reviewers,}}$({line("gh", "api", path, "--jq", query)})"'
    for stack in stacks:
        yield from _of_stack(repository, stack, group)
    yield "\n# the stacks, in the order in which they go up"
    names = json.dumps([stack.name for stack in stacks])
    yield line("gh", "variable", "set", STACKS_VARIABLE, "--repo", repository, "--body", names)


def _of_stack(repository: str, stack: PipelineStack, group: str) -> Iterator[str]:
    environments = f"repos/{repository}/environments"
    yield f"\n# {stack.name}: who approves"
    approval = '{"reviewers":[\'"$reviewers"\'],"prevent_self_review":true,"deployment_branch_policy":'
    yield from _environment(environments, f"{stack.name}-approval", f"'{approval}{json.dumps(_MAIN)}}}'", on_main=True)
    for purpose in (Purpose.READER, Purpose.DEPLOYER):
        identity = PipelineIdentity(stack, purpose, group)
        name, on_main = identity.environment, purpose is Purpose.DEPLOYER
        yield f"\n# {stack.name}: the {purpose}"
        policy = json.dumps({"deployment_branch_policy": _MAIN if on_main else None})
        yield from _environment(environments, name, f"'{policy}'", on_main=on_main)
        yield from identity.created()
        yield identity.trusted("github", _ISSUER, line(f"repo:{repository}:environment:{name}"))
        yield identity.trusted("github-by-ids", _ISSUER, f'"repo:$by_ids:environment:{name}"')
        yield from identity.granted()
        to = ("--repo", repository, "--env", name)
        yield f'{line("gh", "variable", "set", "ARM_CLIENT_ID", *to)} --body "$client_id"'
        for variable, value in (
            ("ARM_TENANT_ID", stack.settings.tenant_id),
            ("ARM_SUBSCRIPTION_ID", stack.settings.subscription_id),
            ("PULUMI_BACKEND_URL", stack.backend),
        ):
            yield line("gh", "variable", "set", variable, *to, "--body", value)


def _environment(environments: str, name: str, body: str, *, on_main: bool) -> Iterator[str]:
    """An environment with this quoted body; with `on_main` only jobs of the branch main may use it."""
    put = line("gh", "api", "--silent", "--method", "PUT", f"{environments}/{name}", "--input", "-")
    yield f"printf %s {body} | {put}"
    if on_main:
        policies = f"{environments}/{name}/deployment-branch-policies"
        known = line("gh", "api", policies, "--jq", '.branch_policies[] | select(.name == "main") | .id')
        create = line("gh", "api", "--silent", "--method", "POST", policies, "--raw-field", "name=main")
        yield f'[ -n "$({known})" ] || {create}'


def _team(name: str) -> str:
    organization, _, team = name.partition("/")
    return f"orgs/{organization}/teams/{team}"
