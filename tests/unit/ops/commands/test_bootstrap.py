"""`idstack bootstrap`: scripts for identities, federations, roles, environments and variables, which may run again."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.components.world import configuration
from tests.unit.ops.conftest import Idstack

BACKEND = "azblob://states?storage_account=st{stack}"
KEY = "azurekeyvault://kv-pulumi.vault.azure.net/keys/pulumi"
GITHUB = ("bootstrap", "github", "acme/identities", "--backend", BACKEND, "--reviewer", "acme/ops")
AZURE_DEVOPS = ("bootstrap", "azure-devops", "acme/identities", "--backend", BACKEND, "--reviewer", "a@acme.example")

# Writes its arguments and its input down. It answers a search with what is in `known`, and a question with an id.
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
    *"value[0]"* | *"service-endpoint list"*)
        cat "{folder}/known" ;;
    *users/* | */teams/*) echo '{{"type":"Team","id":7}}' ;;
    *"output none"*) ;;
    *) echo an-id ;;
esac
"""
_Call = tuple[str, list[str], str]


@pytest.fixture
def project(project: Path) -> Path:
    """A project with the stacks dev and prod, whose files are all that is read."""
    for name in ("dev", "prod"):
        write(project, name)
    return project


def write(folder: Path, name: str, *, key: str = KEY, **changes: Any) -> None:
    """The file of a stack, the example's with changes."""
    values = {f"idstack:{key}": yaml.safe_load(value) for key, value in configuration(**changes).items()}
    (folder / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"secretsprovider": key, "config": values}))


def install(folder: Path, known: str) -> Path:
    """Stand-ins for `az` and `gh`; returns their folder."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (folder / "known").write_text(known)
    for name in ("az", "gh"):
        program = programs / name
        program.write_text(_PROGRAM.format(folder=folder, name=name))
        program.chmod(0o755)
    return programs


def run(folder: Path, script: str, known: str) -> list[_Call]:
    """Run a script with the stand-ins; returns what each was asked, with its input."""
    environment = {**os.environ, "PATH": f"{install(folder, known)}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return _calls(folder)


def _calls(folder: Path) -> list[_Call]:
    records = (folder / "calls").read_text().split("\036")[:-1]
    fields = [record.split("\037") for record in records]
    return [(name, words, given) for name, *words, given in fields]


def value(words: Sequence[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_github_gets_environments_identities_and_at_last_the_list_of_stacks(
    project: Path, idstack: Idstack, tmp_path: Path
) -> None:
    printed = idstack(*GITHUB, "--stack", "dev", "--stack", "prod")
    assert printed.code == 0, printed.error

    calls = run(tmp_path, printed.output, known="")

    puts = {words[-3].rpartition("/")[2]: json.loads(given) for _, words, given in calls if given}
    main = {"protected_branches": False, "custom_branch_policies": True}
    assert list(puts) == ["dev-approval", "dev-preview", "dev", "prod-approval", "prod-preview", "prod"]
    assert puts["prod-approval"] == {
        "reviewers": [{"type": "Team", "id": 7}],
        "prevent_self_review": True,
        "deployment_branch_policy": main,
    }
    assert puts["dev"] == {"deployment_branch_policy": main}
    assert puts["dev-preview"] == {"deployment_branch_policy": None}
    created = [value(words, "--name") for _, words, _ in calls if words[:2] == ["identity", "create"]]
    assert created == ["idstack-dev-preview", "idstack-dev", "idstack-prod-preview", "idstack-prod"]
    subjects = [value(words, "--subject") for _, words, _ in calls if "--subject" in words]
    assert subjects[:2] == [
        "repo:acme/identities:environment:dev-preview",
        "repo:an-id:environment:dev-preview",
    ]
    assert len(subjects) == 8
    name, last, _ = calls[-1]
    assert (name, last[:3], json.loads(value(last, "--body"))) == (
        "gh",
        ["variable", "set", "IDSTACK_STACKS"],
        ["dev", "prod"],
    )


@pytest.mark.parametrize("command", [GITHUB, AZURE_DEVOPS], ids=["github", "azure-devops"])
def test_each_identity_has_the_rights_of_its_purpose(
    project: Path, idstack: Idstack, tmp_path: Path, command: tuple[str, ...]
) -> None:
    script = idstack(*command, "--stack", "dev").output

    calls = [words for name, words, _ in run(tmp_path, script, known="") if name == "az"]

    makes = [at for at, words in enumerate(calls) if words[:2] == ["identity", "create"]]
    reader, deployer = calls[makes[0] : makes[1]], calls[makes[1] :]
    for words in (*reader, *deployer):
        if words[:3] == ["role", "assignment", "create"]:
            assert value(words, "--assignee-object-id") == "an-id"
    assert _state_roles(reader) == {
        "an-id/blobServices/default/containers/states": "Storage Blob Data Reader",
        "an-id/keys/pulumi": "idstack state reader",
    }
    assert _state_roles(deployer) == {
        "an-id/blobServices/default/containers/states": "Storage Blob Data Contributor",
        "an-id/keys/pulumi": "Key Vault Crypto User",
    }
    assert "stdev" in [value(words, "--name") for words in reader if words[0] == "storage"]
    assert not any("--condition" in words for words in reader)
    assert any("--condition" in words for words in deployer)
    [permission] = [words for words in calls if "POST" in words and words[0] == "rest"]
    assert permission in deployer
    assert json.loads(value(permission, "--body")) == {
        "principalId": "an-id",
        "resourceId": "an-id",
        "appRoleId": "18a4783c-866b-4cc7-a460-3d5e5662c884",
    }


def _state_roles(calls: Sequence[Sequence[str]]) -> dict[str, str]:
    scopes = {value(words, "--scope"): value(words, "--role") for words in calls if "--scope" in words}
    return {scope: role for scope, role in scopes.items() if scope.startswith("an-id/")}


@pytest.mark.parametrize("command", [GITHUB, AZURE_DEVOPS], ids=["github", "azure-devops"])
def test_what_would_be_refused_a_second_time_is_left_out_then(
    project: Path, idstack: Idstack, tmp_path: Path, command: tuple[str, ...]
) -> None:
    script = idstack(*command, "--stack", "dev").output

    again = run(tmp_path, script, known="there\n")

    assert not any("POST" in words for _, words, _ in again)
    assert not any(words[:3] == ["role", "definition", "create"] for _, words, _ in again)
    assert not any(words[:3] == ["devops", "service-endpoint", "create"] for _, words, _ in again)


def test_azure_devops_gets_connections_and_an_approval(project: Path, idstack: Idstack, tmp_path: Path) -> None:
    printed = idstack(*AZURE_DEVOPS, "--stack", "dev")
    assert printed.code == 0, printed.error

    calls = run(tmp_path, printed.output, known="")

    bodies = [json.loads(given) for _, _, given in calls if given]
    environment, check, reader, deployer, on_main = bodies
    connections = [reader, deployer]
    assert environment == {"name": "dev-approval"}
    assert check["resource"] == {"type": "environment", "id": "an-id"}
    assert check["settings"] == {"approvers": [{"id": "an-id"}], "requesterCannotBeApprover": True}
    assert [connection["name"] for connection in connections] == ["idstack-dev-preview", "idstack-dev"]
    for connection in connections:
        assert connection["authorization"]["parameters"]["serviceprincipalid"] == "an-id"
        assert connection["serviceEndpointProjectReferences"][0]["projectReference"]["id"] == "an-id"
    assert on_main["resource"] == {"type": "endpoint", "id": "an-id"}, "a branch cannot use the deployer's"
    assert on_main["settings"]["inputs"]["allowedBranches"] == "refs/heads/main"
    trusted = [words for _, words, _ in calls if "--issuer" in words]
    assert [(value(words, "--issuer"), value(words, "--subject")) for words in trusted] == [("an-id", "an-id")] * 2
    assert "#   - {name: dev, backend: " in printed.output


def test_apply_runs_the_script(
    project: Path, idstack: Idstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{install(tmp_path, known='')}:{os.environ['PATH']}")

    printed = idstack(*GITHUB, "--stack", "dev", "--apply")

    assert (printed.code, printed.error) == (0, "")
    assert "IDSTACK_STACKS" in _calls(tmp_path)[-1][1]


def test_a_step_that_fails_ends_it(
    project: Path, idstack: Idstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("az", "gh"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 3\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    printed = idstack(*GITHUB, "--stack", "dev", "--apply")

    assert printed.code == 1
    assert printed.error.startswith("idstack: the script ended with code 3; the reason is printed above.")


def test_everything_that_no_pipeline_can_use_is_refused_at_once(project: Path, idstack: Idstack) -> None:
    write(project, "prod", key="passphrase")
    write(project, "china", cloud="AzureChinaCloud", hostedClusters=[])
    write(project, "wrong", location="West Europe")
    stacks = ("dev", "prod", "china", "local", "none", "wrong")
    command = ("bootstrap", "github", "acme/identities", "--backend", "file://.", "--reviewer", "jo")

    printed = idstack(*command, *(word for name in stacks for word in ("--stack", name)))

    assert (printed.code, printed.output) == (1, "")
    for problem in (
        "dev: a pipeline cannot reach the state at 'file://.'; accepted, as idstack:backend in its file or by "
        "--backend: azblob://",
        "Pulumi.prod.yaml has no Azure key as `secretsprovider`, and a pipeline has no passphrase: ",
        "china is in AzureChinaCloud, but the pipelines sign in only to AzurePublicCloud; leave it out",
        "local is a local stack, which no pipeline can reach; leave it out",
        "Pulumi.none.yaml",
    ):
        assert problem in printed.error


@pytest.mark.parametrize("name", ["identities", "acme/", "acme/identities/more"])
def test_a_repository_has_an_organization_and_a_name(project: Path, idstack: Idstack, name: str) -> None:
    printed = idstack("bootstrap", "github", name, "--stack", "dev", "--reviewer", "jo")

    assert printed.code == 2
    assert "is not <organization>/<name>" in printed.error
