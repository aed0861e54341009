"""The pipeline of Azure DevOps: a pull request previews, main goes up after an approval, the schedule renews."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

PIPELINE = ".azuredevops/azure-pipelines.yml"
_PROJECT = Path(__file__).parents[3]
_EACH = "${{ each stack in parameters.stacks }}"
_CASES = {
    "pull request": "${{ if eq(variables['Build.Reason'], 'PullRequest') }}",
    "schedule": "${{ elseif eq(variables['Build.Reason'], 'Schedule') }}",
    "push": "${{ else }}",
}


def _parsed(path: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = yaml.safe_load((_PROJECT / path).read_text(encoding="utf-8"))
    return document


def _stages() -> dict[str, Mapping[str, Any]]:
    """The one stage of each case that a stack has."""
    [listed] = [stage[_EACH] for stage in _parsed(PIPELINE)["stages"] if _EACH in stage]
    found = {key: stages for item in listed for key, stages in item.items()}
    assert list(found) == list(_CASES.values())
    return {case: found[key][0] for case, key in _CASES.items()}


def _inputs(case: str) -> Mapping[str, Any]:
    [job] = _stages()[case]["jobs"]
    assert job["template"] == "stack.yml"
    inputs: Mapping[str, Any] = job["parameters"]
    return inputs


def _steps() -> Iterator[Mapping[str, Any]]:
    for job in _parsed(".azuredevops/stack.yml")["jobs"]:
        yield from job.get("steps", ())


def test_a_pull_request_signs_in_for_a_preview_and_renews_nothing() -> None:
    inputs = _inputs("pull request")

    assert inputs["connection"] == "idstack-${{ stack.name }}-preview"
    assert (inputs["command"], inputs["arguments"].split()[0]) == ("preview", "--hold")


def test_a_stack_goes_up_on_main_after_its_approval_and_the_stack_before_it() -> None:
    stage, inputs = _stages()["push"], _inputs("push")

    assert (inputs["command"], inputs["environment"]) == ("up", "${{ stack.name }}-approval")
    assert "'refs/heads/main'" in stage["condition"]
    assert "dependsOn" not in stage


def test_renewals_run_each_day_without_an_approval_and_with_every_commit() -> None:
    [schedule] = _parsed(PIPELINE)["schedules"]
    [checkout] = [step for step in _steps() if "checkout" in step]

    assert (schedule["branches"], schedule["always"]) == ({"include": ["main"]}, True)
    assert _inputs("schedule")["command"] == "renew"
    assert "environment" not in _inputs("schedule")
    assert (checkout["fetchDepth"], checkout["persistCredentials"]) == (0, False)


def test_without_stacks_no_job_runs() -> None:
    document = _parsed(PIPELINE)
    [[none]] = [stage.values() for stage in document["stages"] if _EACH not in stage]

    assert document["parameters"][0]["default"] == []
    assert [job["condition"] for stage in none for job in stage["jobs"]] == [False]


@pytest.mark.parametrize("case", _CASES)
def test_every_stack_gives_what_the_template_asks_for(case: str) -> None:
    parameters = _parsed(".azuredevops/stack.yml")["parameters"]
    required = {parameter["name"] for parameter in parameters if "default" not in parameter}

    assert required <= _inputs(case).keys() <= {parameter["name"] for parameter in parameters}


def test_every_command_is_a_target_of_the_makefile_and_ends_before_its_job() -> None:
    makefile = (_PROJECT / "Makefile").read_text(encoding="utf-8")
    [job] = [listed for listed in _parsed(".azuredevops/stack.yml")["jobs"] if listed.get("job") == "make"]
    [script] = [step["inputs"]["inlineScript"] for step in job["steps"] if step.get("task") == "AzureCLI@2"]
    [limit] = re.findall(r"--time-limit (\d+)", script)

    assert {_inputs(case)["command"] for case in _CASES} <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert int(limit) <= job["timeoutInMinutes"] - 10
    for step in _steps():
        text = step.get("script", step.get("inputs", {}).get("inlineScript", ""))
        assert not [expression for expression in ("${{", "$(") if expression in text], "values are in its environment"
