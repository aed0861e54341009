"""The GitHub workflows: pinned actions, least rights, and no way from a pull request to a deployer's identity."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ops.fleet.stacks import CANARIES, JOBS, SHARED
from tests.storm.plans import PLANS
from tests.unit.workflows.parsed import GITHUB, jobs_of, parsed

_WORKFLOWS = sorted((GITHUB / "workflows").iterdir())
_USES = re.compile(r"^\s*(?:- )?uses:\s*(?P<what>\S+)\s*(?P<comment>#.*)?$", re.MULTILINE)
_PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
_VERSION = re.compile(r"# v\d+\.\d+\.\d+")
_STACK = "./.github/workflows/stack.yml"
_APPROVAL = "./.github/workflows/approval.yml"
_AT_NIGHT = {"storm.yml"}  # nobody waits for it; GitHub ends a job after six hours
_HAS_STACKS = "vars.IDSTACK_STACKS != ''"
_LISTED = "${{ fromJSON(vars.IDSTACK_STACKS || '[]') }}"
# A user has no use for them: they prove the program, and some take hours.
_OF_THE_PROJECT = {"hypershift.yml", "providers.yml", "storm.yml"}
_SAME_REPOSITORY = "github.event.pull_request.head.repo.full_name == github.repository"

workflows = pytest.mark.parametrize("file", _WORKFLOWS, ids=lambda file: file.name)


def _events(file: Path) -> Mapping[str, Any]:
    # YAML 1.1 takes the key `on` for a boolean.
    events: Mapping[str, Any] = parsed(file)[True]
    return events


def _calls(target: str, workflow: str) -> Iterator[Mapping[str, Any]]:
    """The jobs that call `workflow`, of `target` and of every workflow it calls."""
    for job in jobs_of(target).values():
        called = job.get("uses", "")
        if called == workflow:
            yield job
        elif called:
            yield from _calls(Path(called).name, workflow)


@workflows
def test_every_action_is_our_own_or_pinned_by_digest_with_its_version(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    used = list(_USES.finditer(text))

    assert len(used) == text.count("uses:")
    for use in used:
        if not use["what"].startswith("./"):
            assert _PINNED.fullmatch(use["what"]), use[0]
            assert _VERSION.fullmatch(use["comment"] or ""), use[0]


def test_an_action_has_one_digest_and_a_digest_one_version() -> None:
    found = {
        (use["what"].partition("@")[0], use["what"], use["comment"])
        for file in _WORKFLOWS
        for use in _USES.finditer(file.read_text(encoding="utf-8"))
        if "@" in use["what"]
    }

    assert len(found) == len({action for action, _, _ in found})


@workflows
def test_a_workflow_starts_without_rights_and_each_job_declares_its_own(file: Path) -> None:
    # `permissions: {}` is the empty mapping; without the line the repository's settings decide on a job's rights.
    assert parsed(file)["permissions"] == {}
    for name, job in jobs_of(file).items():
        rights = job["permissions"]
        assert {right for right, level in rights.items() if level == "write"} <= {
            "id-token",
            "issues",
            "pull-requests",
        }, name
        assert "issues" not in rights or (file.name, name) == ("rotate.yml", "report")
        if "id-token" in rights:
            assert file.name == "stack.yml" or job.get("uses", "").startswith("./"), "a stack's command alone"


@workflows
def test_no_workflow_runs_a_forks_code_with_this_repositorys_rights(file: Path) -> None:
    assert not _events(file).keys() & {"pull_request_target", "workflow_run", "issue_comment"}


@workflows
def test_a_pull_request_job_that_signs_in_is_of_this_repositorys_branches(file: Path) -> None:
    if "pull_request" in _events(file):
        for name, job in jobs_of(file).items():
            if "id-token" in job["permissions"]:
                assert job["if"] == f"{_HAS_STACKS} && {_SAME_REPOSITORY}", name


def test_a_pull_request_signs_in_for_a_preview_and_renews_nothing() -> None:
    called = [job["with"] for job in _calls("preview.yml", _STACK)]

    assert called
    for inputs in called:
        assert inputs["environment"] == "${{ inputs.stack }}-preview"
        assert inputs["command"] == "preview"
        assert "--hold" in inputs["arguments"].split()


@pytest.mark.parametrize("file", ["preview.yml", "rehearse.yml", "up.yml", "rotate.yml", "drift.yml"])
def test_one_variable_lists_the_stacks_and_without_it_nothing_runs(file: str) -> None:
    first, *others = jobs_of(file).values()

    assert first["strategy"]["matrix"] == {"stack": _LISTED}
    assert first["if"].split(" && ")[0] == _HAS_STACKS
    assert all(other["needs"] and other["if"] == "failure()" for other in others)


def test_the_projects_own_checks_run_for_the_project_alone() -> None:
    for name in _OF_THE_PROJECT:
        [job] = jobs_of(name).values()
        assert job["if"] == "vars.IDSTACK_PROJECT_CI == 'true'", name
    [ci], [storm] = (jobs_of(name).values() for name in ("ci.yml", "storm.yml"))
    assert ci["if"] == "vars.IDSTACK_STACKS == '' || vars.IDSTACK_PROJECT_CI == 'true'"
    assert storm["strategy"]["matrix"]["plan"] == ["", *PLANS], "each night every named plan is carried out"


@pytest.mark.parametrize("file", ["preview-stack.yml", "rehearse-stack.yml"])
def test_the_job_that_comments_does_not_check_out_the_pull_request(file: str) -> None:
    job = jobs_of(file)["comment"]

    assert job["permissions"] == {"pull-requests": "write"}
    assert not any("uses" in step for step in job["steps"])
    if file == "rehearse-stack.yml":
        [every] = jobs_of("rehearse.yml").values()
        assert every["if"] == _HAS_STACKS, "forks are rehearsed as well"
        assert jobs_of(file)["rehearse"]["permissions"] == {"contents": "read"}, "it needs no identity"
        assert _SAME_REPOSITORY in job["if"]


def test_a_stack_goes_up_after_its_approval_and_the_stack_before_it() -> None:
    jobs = jobs_of("up-stack.yml")
    [every] = jobs_of("up.yml").values()

    assert jobs["up"]["needs"] == "approval"
    assert jobs["approval"]["needs"] == "preview"
    assert jobs["approval"]["uses"] == _APPROVAL
    assert jobs["approval"]["with"]["environment"] == "${{ inputs.stack }}-approval"
    # GitHub makes the jobs of a matrix in its order; the first that fails ends those that wait.
    assert every["strategy"]["max-parallel"] == 1
    assert every["strategy"].get("fail-fast", True)
    events = _events(GITHUB / "workflows/up.yml")
    assert (list(events), events["push"]["branches"]) == (["push"], ["main"])


def _fleet_jobs() -> dict[str, Mapping[str, Any]]:
    """The jobs of a fleet that change something, in their order."""
    jobs = jobs_of("fleet.yml")
    return {name: job for name, job in jobs.items() if job.get("uses") == _STACK}


def test_a_fleet_has_a_job_for_each_matrix_and_each_waits_for_the_one_before() -> None:
    jobs, waves = jobs_of("fleet.yml"), _fleet_jobs()

    assert list(waves) == [SHARED, CANARIES, *JOBS]
    assert jobs["plan"]["outputs"] == {name: f"${{{{ steps.waves.outputs.{name} }}}}" for name in waves}
    assert jobs["approval"]["needs"] == "plan"
    assert jobs["approval"]["uses"] == _APPROVAL
    assert jobs["approval"]["with"]["environment"] == "${{ inputs.environment }}-approval"
    assert [wave["needs"] for wave in waves.values()] == [
        ["plan", before] for before in ("approval", *list(waves)[:-1])
    ]
    for name, job in waves.items():
        assert job["strategy"]["matrix"] == f"${{{{ fromJSON(needs.plan.outputs.{name}) }}}}"
        assert (job["with"]["stack"], job["with"]["command"]) == ("${{ matrix.stack }}", "up")
    for name, job in list(waves.items())[1:]:
        # A wave that is skipped would skip those behind it; `failure()` looks at every job before.
        assert job["if"] == f"${{{{ !cancelled() && !failure() && needs.plan.outputs.{name} != '' }}}}"
        assert job["strategy"]["fail-fast"] is False, "what runs beside a failure is not interrupted"


def test_commands_that_change_one_stack_run_one_at_a_time_to_their_end() -> None:
    changing = [
        job
        for file in _WORKFLOWS
        for job in jobs_of(file).values()
        if job.get("uses") == _STACK and job["with"]["command"] != "preview"
    ]

    assert len(changing) == 3 + len(_fleet_jobs()), "up, renew and recover; and each wave of a fleet"
    for job in changing:
        assert job["concurrency"] == {"group": f"up-{job['with']['stack']}"}


def test_renewals_have_every_commit_that_may_have_been_brought_up() -> None:
    renewals = [job["with"] for job in _calls("rotate.yml", _STACK) if job["with"]["command"] == "renew"]
    [checkout] = [
        step["with"]
        for step in jobs_of("stack.yml")["make"]["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    ]

    assert [inputs["fetch-depth"] for inputs in renewals] == [0]
    assert checkout["fetch-depth"] == "${{ inputs.fetch-depth }}"


def test_a_recovery_is_approved_and_brings_nothing_up() -> None:
    jobs = jobs_of("recover.yml")

    assert list(_events(GITHUB / "workflows/recover.yml")) == ["workflow_dispatch"]
    assert jobs["recover"]["needs"] == "approval"
    assert jobs["approval"]["uses"] == _APPROVAL
    assert jobs["approval"]["with"]["environment"] == "${{ inputs.stack }}-approval"
    assert "--no-up" in jobs["recover"]["with"]["arguments"].split()


def test_nobody_waits_for_an_approval_but_behind_the_look_at_its_reviewers() -> None:
    waiting = {
        (file.name, name)
        for file in _WORKFLOWS
        for name, job in jobs_of(file).items()
        if "environment" in job and file.name != "stack.yml"
    }
    jobs = jobs_of("approval.yml")

    assert waiting == {("approval.yml", "approved")}
    assert jobs["approved"]["needs"] == "reviewers"
    assert (jobs["approved"]["environment"], jobs["approved"]["permissions"]) == ("${{ inputs.environment }}", {})
    assert jobs["reviewers"]["permissions"] == {"actions": "read"}
    for file in ("fleet.yml", "recover.yml", "up-stack.yml"):
        assert jobs_of(file)["approval"]["permissions"] == {"actions": "read"}


@workflows
def test_a_job_ends_some_time_and_hands_on_no_token_secret_or_expression(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"\b(dev|stage|prod)\b", text), "no workflow names a stack"
    assert set(re.findall(r"secrets\s*[.\[:]\s*['\"]?(\w+)", text)) <= {"GITHUB_TOKEN"}
    for name, job in jobs_of(file).items():
        assert "uses" in job or job["timeout-minutes"] <= (360 if file.name in _AT_NIGHT else 60), name
        for step in job.get("steps", ()):
            assert "${{" not in step.get("run", ""), "scripts take values from their environment"
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, name


def _make_targets() -> Iterator[str]:
    """The targets that the workflows and `.ci/run` name."""
    ci = GITHUB.parent / ".ci/run"
    for file in (*_WORKFLOWS, ci):
        script = "\n".join(line for line in file.read_text(encoding="utf-8").splitlines() if "#" not in line)
        yield from re.findall(r"\bmake ([a-z][a-z0-9]*)\b", script)
    for workflow in _WORKFLOWS:
        for job in jobs_of(workflow).values():
            if job.get("uses") == _STACK:
                yield job["with"]["command"]


def test_every_make_target_that_a_workflow_runs_exists() -> None:
    makefile = (GITHUB.parent / "Makefile").read_text(encoding="utf-8")
    targets = set(_make_targets())

    assert {"setup", "lint", "test", "e2e", "preview", "up", "renew", "recover"} <= targets
    assert targets <= set(re.findall(r"^([a-z][a-z0-9]*):", makefile, re.MULTILINE))
