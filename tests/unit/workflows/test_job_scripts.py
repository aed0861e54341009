"""The scripts in the GitHub workflows, run as GitHub runs them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.workflows.parsed import jobs_of

_REVIEWERS = {"type": "required_reviewers", "reviewers": [{"type": "Team", "reviewer": {"slug": "deployers"}}]}
_UNPROTECTED = "has no required reviewers"


def _program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def _ran(script: str, programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it as GitHub starts `shell: bash`, with a folder of programs before those of the machine."""
    environment = {**os.environ, **variables, "PATH": f"{programs}:{os.environ['PATH']}"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        ({"protection_rules": [{"type": "wait_timer", "wait_timer": 30}, _REVIEWERS]}, None),
        (None, "does not exist or cannot be read"),
        ({}, _UNPROTECTED),
        ({"protection_rules": []}, _UNPROTECTED),
        ({"protection_rules": [{"type": "wait_timer", "wait_timer": 30}, {"type": "branch_policy"}]}, _UNPROTECTED),
        ({"protection_rules": [{**_REVIEWERS, "reviewers": []}]}, _UNPROTECTED),
    ],
    ids=["reviewers", "missing", "no rules", "empty rules", "other rules", "rule for nobody"],
)
def test_an_approval_that_nobody_has_to_give_is_refused(tmp_path: Path, answer: Any, refusal: str | None) -> None:
    [step] = jobs_of("approval.yml")["reviewers"]["steps"]
    asked = tmp_path / "asked"
    body = f"cat <<'END'\n{json.dumps(answer)}\nEND" if answer is not None else "echo 'gh: Not Found (404)' >&2; exit 1"
    _program(tmp_path / "gh", f'echo "$*" > "{asked}"\n{body}')

    done = _ran(step["run"], tmp_path, ENVIRONMENT="prod eu/1-approval", GITHUB_REPOSITORY="o/r")

    assert asked.read_text() == "api repos/o/r/environments/prod%20eu%2F1-approval\n"
    if refusal is None:
        assert (done.returncode, done.stdout) == (0, "")
    else:
        assert done.returncode == 1
        assert f"::error::The environment prod eu/1-approval, which approves this, {refusal}. " in done.stdout
        assert "with required reviewers" in done.stdout


def _command() -> tuple[Mapping[str, Any], str]:
    """The job that runs a stack's command, and the script that does so."""
    job = jobs_of("stack.yml")["make"]
    [script] = [step["run"] for step in job["steps"] if step.get("name", "").startswith("make ")]
    return job, script


def test_a_stacks_command_ends_itself_ten_minutes_before_its_job_is_killed() -> None:
    job, script = _command()

    [limit] = re.findall(r"--time-limit (\d+)", script)
    # What comes before it in the job takes some of the rest.
    assert int(limit) <= job["timeout-minutes"] - 10


_MAKE = """echo "make $*"
sleep 3600 &
trap 'kill $!; echo unlocked; exit 2' TERM
kill -s "$SIGNAL" $PPID
wait
"""


@contextmanager
def _obeyed(number: signal.Signals) -> Iterator[None]:
    """No program started in this block ignores the signal, as one in the background of a shell would."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_job_passes_the_signal_on_once_and_awaits_the_end(tmp_path: Path, number: signal.Signals) -> None:
    _program(tmp_path / "make", _MAKE)
    own = {"RUNNER_TEMP": str(tmp_path), "COMMAND": "up", "ARGUMENTS": "--yes", "SIGNAL": number.name[3:]}

    with _obeyed(number):
        done = _ran(_command()[1], tmp_path, **own)

    assert done.returncode == 2, done.stderr
    assert done.stdout.splitlines()[-1] == "unlocked"
    assert (tmp_path / "printed").read_text() == done.stdout


def test_a_sign_in_gives_no_command_a_token_as_an_argument(tmp_path: Path) -> None:
    [script] = [step["run"] for step in jobs_of("stack.yml")["make"]["steps"] if step.get("name") == "Sign in"]
    for name in ("curl", "jq", "az"):
        _program(tmp_path / name, f'echo "$*" >> {tmp_path}/arguments; cat')

    done = _ran(script, tmp_path, ACTIONS_ID_TOKEN_REQUEST_TOKEN="ours")

    assert done.stdout.splitlines()[-1] == "Authorization: Bearer ours"
    assert "ours" not in (tmp_path / "arguments").read_text()
