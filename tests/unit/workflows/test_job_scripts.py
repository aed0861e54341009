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
    gh = tmp_path / "gh"
    gh.write_text(f'#!/bin/sh\necho "$*" > "{asked}"\n{body}\n')
    gh.chmod(0o755)
    own = {"ENVIRONMENT": "prod eu/1-approval", "GITHUB_REPOSITORY": "o/r", "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )

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


_MAKE = """\
#!/bin/sh
echo "make $*"
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
    make = tmp_path / "make"
    make.write_text(_MAKE)
    make.chmod(0o755)
    own = {"RUNNER_TEMP": str(tmp_path), "COMMAND": "up", "ARGUMENTS": "--yes", "SIGNAL": number.name[3:]}
    environment = {**os.environ, **own, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    # As GitHub starts `shell: bash`.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", _command()[1]]
    with _obeyed(number):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 2, done.stderr
    assert done.stdout.splitlines()[-1] == "unlocked"
    assert (tmp_path / "printed").read_text() == done.stdout
