"""What the workflows write for people: the comment of a preview, and the issue of a renewal that failed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.workflows.parsed import jobs_of

# Writes its arguments down, and answers a list with what is in the file `known`.
_GH = """\
#!/bin/sh
echo "$*" >> "{folder}/asked"
case "$*" in
    *--paginate*jobs*) echo "- dev / make renew" ;;
    *--paginate*) cat "{folder}/known" ;;
esac
"""


def _run_with_gh(folder: Path, script: str, **variables: str) -> list[str]:
    """Run a step's script as GitHub does, in `folder`; returns what it asked of `gh`."""
    gh = folder / "gh"
    gh.write_text(_GH.format(folder=folder))
    gh.chmod(0o755)
    environment = {**os.environ, **variables, "PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "o/r"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    subprocess.run(command, env=environment, cwd=folder, check=True)
    return (folder / "asked").read_text().splitlines()


def _script(file: str, job: str) -> str:
    """The script of a job's only step."""
    [step] = jobs_of(file)[job]["steps"]
    script: str = step["run"]
    return script


@pytest.mark.parametrize(
    ("known", "changed"),
    [("", "--method POST repos/o/r/issues/7/comments"), ("41\n", "--method PATCH repos/o/r/issues/comments/41")],
    ids=["first comment", "updated comment"],
)
def test_the_comment_of_a_preview_is_a_table_with_the_rest_folded(tmp_path: Path, known: str, changed: str) -> None:
    (tmp_path / "known").write_text(known)
    table = "**+1**\n\n| cluster |\n|---|\n| hc1 |\n\n@all [x](https://x) <img>"
    given = {"STACK": "dev", "NUMBER": "7", "COMMIT": "abc", "RESULT": "success", "RUN": "https://run"}

    asked = _run_with_gh(tmp_path, _script("preview-stack.yml", "comment"), TABLE=table, TEXT="    +  role", **given)

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

    _run_with_gh(tmp_path, _script(file, "comment"), **texts, **given)

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


def test_a_comment_of_a_preview_is_shorter_than_github_takes() -> None:
    [script] = [step["run"] for step in jobs_of("stack.yml")["make"]["steps"] if step.get("id") == "text"]

    assert sum(map(int, re.findall(r"head --bytes (\d+)", script))) < 65_536 - 1_000


@pytest.mark.parametrize(
    ("known", "changed"),
    [("", "--method POST repos/o/r/issues --raw-field title=A renewal failed"), ("3\n", "repos/o/r/issues/3/comments")],
    ids=["first failure", "another failure"],
)
def test_a_failed_renewal_opens_an_issue_or_comments_on_the_open_one(tmp_path: Path, known: str, changed: str) -> None:
    (tmp_path / "known").write_text(known)
    job = jobs_of("rotate.yml")["report"]

    asked = _run_with_gh(tmp_path, _script("rotate.yml", "report"), RUN="https://run", GITHUB_RUN_ID="5")

    assert changed in asked[-1]
    assert "- dev / make renew" in (tmp_path / "body.md").read_text()
    assert (job["needs"], job["if"]) == ("renew", "failure()")
