"""The scripts that prepare a stack's pipelines, with stand-ins for `az`, `gh` and `idstack`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[3] / "docs/guides"
GITHUB, AZURE_DEVOPS = GUIDES / "bootstrap-github.sh", GUIDES / "bootstrap-azure-devops.sh"
_FORGE = {
    GITHUB: {"REPOSITORY": "acme/identities", "REVIEWERS": "acme/ops kim"},
    AZURE_DEVOPS: {
        "ORGANIZATION": "https://dev.azure.com/acme",
        "PROJECT": "identities",
        "REVIEWERS": "a@acme.example b@acme.example",
    },
}
_STACK = {
    "STACK": "dev",
    "LOCATION": "westeurope",
    "TENANT_ID": "tenant",
    "SUBSCRIPTION_ID": "subscription",
    "BACKEND_ACCOUNT": "stdev",
    "BACKEND_CONTAINER": "states",
    "KEY_VAULT": "kv-pulumi",
    "KEY": "pulumi",
}
# Notes its arguments and its input. It answers a search with what is in `known` or `checks`, and a question with an id.
_PROGRAM = """\
#!/bin/sh
{{
    printf '%s\\037' {name} "$@"
    case "$*" in
        *"--input -"*) cat ;;
        *--in-file* | *--service-endpoint-configuration*) for last; do :; done; cat "$last" ;;
    esac
    printf '\\036'
}} >> "{folder}/calls"
case "$*" in
    *"deployment-branch-policies --jq"* | *"?appRoleId"* | *"definition list"*) cat "{folder}/known" ;;
    *resourceId=*) cat "{folder}/checks" ;;
    *"value[0]"* | *"service-endpoint list"*) cat "{folder}/known" ;;
    users/* | *" users/"* | */teams/*) echo '{{"type":"Team","id":7}}' ;;
    *rbac*) ;;
    *"output none"*) ;;
    *) echo an-id ;;
esac
"""
_Call = tuple[str, list[str], str]


def run(script: Path, folder: Path, known: str = "", checks: str = "", **changes: str) -> tuple[str, list[_Call]]:
    """Run a script; returns what it prints, and what each program was asked, with its input."""
    (folder / "calls").write_text("")
    (folder / "known").write_text(known)
    (folder / "checks").write_text(checks)
    for name in ("az", "gh", "idstack"):
        (folder / name).write_text(_PROGRAM.format(folder=folder, name=name))
        (folder / name).chmod(0o755)
    variables = {**_FORGE[script], **_STACK, "IDSTACK": str(folder / "idstack"), **changes}
    environment = {**os.environ, **variables, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    fields = [record.split("\037") for record in (folder / "calls").read_text().split("\036")[:-1]]
    return done.stdout, [(name, words, given) for name, *words, given in fields]


def value(words: Sequence[str], option: str) -> str:
    return words[words.index(option) + 1]


@pytest.mark.parametrize("script", [GITHUB, AZURE_DEVOPS], ids=["github", "azure-devops"])
def test_what_is_missing_is_named_at_once(script: Path) -> None:
    environment = {"PATH": os.environ["PATH"], **_STACK, "KEY": ""}
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=False)

    named = [name for name in _FORGE[script] if name != "REVIEWERS"]
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"set in the environment: {' '.join([*named, 'REVIEWERS', 'KEY'])}\n"


def test_github_gets_environments_identities_and_variables(tmp_path: Path) -> None:
    printed, calls = run(GITHUB, tmp_path)

    puts = {words[-3].rpartition("/")[2]: json.loads(given) for _, words, given in calls if given}
    main = {"protected_branches": False, "custom_branch_policies": True}
    assert puts == {
        "dev-approval": {
            "reviewers": [{"type": "Team", "id": 7}] * 2,
            "prevent_self_review": True,
            "deployment_branch_policy": main,
        },
        "dev-preview": {"deployment_branch_policy": None},
        "dev": {"deployment_branch_policy": main},
    }
    limited = [words for _, words, _ in calls if "name=main" in words]
    assert [words[4].split("/")[-2] for words in limited] == ["dev-approval", "dev"]
    created = [value(words, "--name") for _, words, _ in calls if words[:2] == ["identity", "create"]]
    assert created == ["idstack-dev-preview", "idstack-dev"]
    assert [value(words, "--subject") for _, words, _ in calls if "--subject" in words] == [
        "repo:acme/identities:environment:dev-preview",
        "repo:an-id:environment:dev-preview",
        "repo:acme/identities:environment:dev",
        "repo:an-id:environment:dev",
    ]
    variables = {(value(words, "--env"), words[2]): value(words, "--body") for _, words, _ in calls if "--env" in words}
    assert variables["dev", "PULUMI_BACKEND_URL"] == "azblob://states?storage_account=stdev"
    assert len(variables) == 8
    assert "gh variable set IDSTACK_STACKS --repo acme/identities" in printed


@pytest.mark.parametrize("script", [GITHUB, AZURE_DEVOPS], ids=["github", "azure-devops"])
def test_each_identity_has_the_rights_of_its_purpose(script: Path, tmp_path: Path) -> None:
    calls = [words for _, words, _ in run(script, tmp_path)[1]]

    assert [words for words in calls if words[0] == "rbac"] == [
        ["rbac", "--azure", "an-id", "--principal-type", "ServicePrincipal", "--for", purpose, "--stack", "dev"]
        for purpose in ("reader", "deployer")
    ]
    makes = [at for at, words in enumerate(calls) if words[:2] == ["identity", "create"]]
    reader, deployer = calls[makes[0] : makes[1]], calls[makes[1] :]
    container, key = "an-id/blobServices/default/containers/states", "an-id/keys/pulumi"
    assert dict(_roles(reader)) == {container: "Storage Blob Data Reader", key: "idstack state reader"}
    assert dict(_roles(deployer)) == {container: "Storage Blob Data Contributor", key: "Key Vault Crypto User"}
    [permission] = [words for words in calls if "POST" in words and words[0] == "rest"]
    assert permission in deployer
    assert json.loads(value(permission, "--body")) == {
        "principalId": "an-id",
        "resourceId": "an-id",
        "appRoleId": "18a4783c-866b-4cc7-a460-3d5e5662c884",
    }


def _roles(calls: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    for words in calls:
        if words[:3] == ["role", "assignment", "create"]:
            assert value(words, "--assignee-object-id") == "an-id"
            yield value(words, "--scope"), value(words, "--role")


@pytest.mark.parametrize("script", [GITHUB, AZURE_DEVOPS], ids=["github", "azure-devops"])
def test_what_would_be_refused_a_second_time_is_left_out_then(script: Path, tmp_path: Path) -> None:
    _, again = run(script, tmp_path, known="there\n", checks="there\n")

    assert not any("POST" in words for _, words, _ in again)
    assert not any(words[:3] == ["role", "definition", "create"] for _, words, _ in again)
    assert not any(words[:3] == ["devops", "service-endpoint", "create"] for _, words, _ in again)


def test_a_run_that_ended_before_a_check_is_completed_by_the_next(tmp_path: Path) -> None:
    """Else prod would be deployed without an approval, or from any branch."""
    _, calls = run(AZURE_DEVOPS, tmp_path, known="there\n")

    made = [(words[0], json.loads(given)) for _, words, given in calls if "POST" in words]
    assert [(check["resource"], check["type"]["name"]) for _, check in made] == [
        ({"type": "environment", "id": "there"}, "Approval"),
        ({"type": "endpoint", "id": "there"}, "Task Check"),
    ]
    looked = [words for _, words, _ in calls if any(word.startswith("resourceId=") for word in words)]
    assert [value(words, "--query-parameters") for words in looked] == [
        "resourceType=environment",
        "resourceType=endpoint",
    ]


def test_azure_devops_gets_connections_and_an_approval(tmp_path: Path) -> None:
    printed, calls = run(AZURE_DEVOPS, tmp_path)

    environment, check, reader, deployer, on_main = [json.loads(given) for _, _, given in calls if given]
    assert environment == {"name": "dev-approval"}
    assert check["resource"] == {"type": "environment", "id": "an-id"}
    assert check["settings"] == {"approvers": [{"id": "an-id"}] * 2, "requesterCannotBeApprover": True}
    for connection, name in ((reader, "idstack-dev-preview"), (deployer, "idstack-dev")):
        assert connection["name"] == name
        assert connection["authorization"]["parameters"] == {"tenantid": "tenant", "serviceprincipalid": "an-id"}
        assert connection["serviceEndpointProjectReferences"][0]["projectReference"]["id"] == "an-id"
    assert on_main["resource"] == {"type": "endpoint", "id": "an-id"}, "a branch cannot use the deployer's"
    assert on_main["settings"]["inputs"]["allowedBranches"] == "refs/heads/main"
    trusted = [words for _, words, _ in calls if "--issuer" in words]
    assert [(value(words, "--issuer"), value(words, "--subject")) for words in trusted] == [("an-id", "an-id")] * 2
    assert '- {name: dev, backend: "azblob://states?storage_account=stdev"}' in printed
