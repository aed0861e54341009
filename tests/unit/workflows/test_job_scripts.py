"""The scripts in the GitHub workflows, run as GitHub runs them, and what they write for people."""

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
    [text] = [step["run"] for step in job["steps"] if step.get("id") == "text"]
    assert sum(map(int, re.findall(r"head --bytes (\d+)", text))) < 65_536 - 1_000, "as long a comment as GitHub takes"


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


# Writes its arguments down, and answers a list with what is in the file `known`.
_GH = """\
echo "$*" >> asked
case "$*" in
    *--paginate*jobs*) echo "- dev / make renew" ;;
    *--paginate*) cat known ;;
esac
"""


def _run_with_gh(folder: Path, file: str, job: str, **variables: str) -> list[str]:
    """Run the script of a job's only step, in `folder`; returns what it asked of `gh`."""
    _program(folder / "gh", _GH)
    [step] = jobs_of(file)[job]["steps"]
    done = _ran(f"cd {folder}; {step['run']}", folder, GITHUB_REPOSITORY="o/r", **variables)
    assert done.returncode == 0, done.stderr
    return (folder / "asked").read_text().splitlines()


@pytest.mark.parametrize(
    ("known", "changed"),
    [("", "--method POST repos/o/r/issues/7/comments"), ("41\n", "--method PATCH repos/o/r/issues/comments/41")],
    ids=["first comment", "updated comment"],
)
def test_the_comment_of_a_preview_is_a_table_with_the_rest_folded(tmp_path: Path, known: str, changed: str) -> None:
    (tmp_path / "known").write_text(known)
    table = "**+1**\n\n| cluster |\n|---|\n| hc1 |\n\n@all [x](https://x) <img>"
    given = {"STACK": "dev", "NUMBER": "7", "COMMIT": "abc", "RESULT": "success", "RUN": "https://run"}

    asked = _run_with_gh(tmp_path, "preview-stack.yml", "comment", TABLE=table, TEXT="    +  role", **given)

    comment = (tmp_path / "comment.md").read_text()
    assert changed in asked[-1]
    assert comment.startswith("<!-- preview of dev -->\n**Preview of dev** at abc: success\n\n**+1**\n\n| cluster |\n")
    assert "<details><summary>Whole output</summary>\n\n    +  role\n\n</details>" in comment
    assert comment.count("[") == 1, "the link to the log; the branch's code gets no link, mention or image of its own"
    assert "@" not in comment
    assert "<img" not in comment


_HOSTILE = """\
# heading
**+1** hc1&#95;x &#42; https://evil.example www.evil.example HTTPS://evil.example @all &#64;all &commat;all &#x40;all
[x](https://x) ![x](https://x) <img src=x> `code` #12 a\x0164; GH&#35;1 https&#58;//evil.example &#38;#64;all
"""


@pytest.mark.parametrize(
    ("file", "variable"),
    [("preview-stack.yml", "TABLE"), ("preview-stack.yml", "TEXT"), ("rehearse-stack.yml", "TEXT")],
)
def test_a_comment_has_no_link_mention_or_html_of_the_branch(tmp_path: Path, file: str, variable: str) -> None:
    """The code of the branch may write anything in the place of what `idstack` prints."""
    (tmp_path / "known").write_text("")
    given = {"STACK": "dev", "NUMBER": "7", "COMMIT": "abc", "RESULT": "success", "RUN": "https://run"}
    texts = {"TABLE": "", "TEXT": "", variable: _HOSTILE}

    _run_with_gh(tmp_path, file, "comment", **texts, **given)

    lines = (tmp_path / "comment.md").read_text().splitlines()
    ours = ("<!-- ", "**Preview", "**Rehearsal", "<details>", "</details>", "[Log](https://run)", "[Whole output")
    shown = [line for line in lines if not line.startswith(("    ", *ours))]
    found = re.findall(
        r"://|www\.|[\[\]<>@!`#\\]|&(?!#(?:38|42|92|95|124|126);)", "\n".join(shown).replace("&#", "&\0")
    )
    assert [mark for mark in found if mark != "&"] == []
    assert set(re.findall(r"&[^;]*;", "\n".join(shown))) <= {"&#95;", "&#42;", "&#38;"}
    if variable == "TABLE" or file != "preview-stack.yml":
        assert any("**+1** hc1&#95;x &#42; https: //evil.example" in line for line in shown)


@pytest.mark.parametrize(
    ("known", "changed"),
    [("", "--method POST repos/o/r/issues --raw-field title=A renewal failed"), ("3\n", "repos/o/r/issues/3/comments")],
    ids=["first failure", "another failure"],
)
def test_a_failed_renewal_opens_an_issue_or_comments_on_the_open_one(tmp_path: Path, known: str, changed: str) -> None:
    (tmp_path / "known").write_text(known)
    job = jobs_of("rotate.yml")["report"]

    asked = _run_with_gh(tmp_path, "rotate.yml", "report", RUN="https://run", GITHUB_RUN_ID="5")

    assert changed in asked[-1]
    assert "- dev / make renew" in (tmp_path / "body.md").read_text()
    assert (job["needs"], job["if"]) == ("renew", "failure()")
