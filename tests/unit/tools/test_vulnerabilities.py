"""What the audit makes of the scanners' answers, and that no answer is not the same as nothing found."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from tools import vulnerabilities
from tools.steps import ROOT
from tools.vulnerabilities import Accepted, AuditError, KnownVulnerability, main

_TODAY: Final = date(2026, 11, 23)
_FOUND: Final = KnownVulnerability("GO-2026-6061", "tools/pulumi", "google.golang.org/grpc v1.57.0, fixed in v1.82.1")
_ACCEPTED: Final = """\
[[accepted]]
id = "GO-2026-6061"
where = "tools/pulumi"
until = 2026-12-24
reason = "on loopback"

[[reported]]
where = "tools/etcd"
reason = "tests alone"
"""


def done(printed: str, error: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], code, printed, error)


@pytest.fixture
def accepted(tmp_path: Path) -> Accepted:
    (tmp_path / "accepted.toml").write_text(_ACCEPTED)
    return Accepted.read(tmp_path / "accepted.toml")


@pytest.mark.parametrize(
    ("finding", "today", "verdict"),
    [
        (_FOUND, _TODAY, "accepted until 2026-12-24"),
        (_FOUND, date(2026, 12, 24), "FAILS: was accepted until 2026-12-24"),
        (KnownVulnerability("GO-2026-6061", "tools/kubelogin", ""), _TODAY, "FAILS"),
        (KnownVulnerability("GO-2026-1", "tools/pulumi", ""), _TODAY, "FAILS"),
        (KnownVulnerability("GO-2026-1", "tools/etcd", ""), _TODAY, "reported only"),
    ],
)
def test_a_finding_fails_unless_it_is_accepted_there_and_today(
    accepted: Accepted, finding: KnownVulnerability, today: date, verdict: str
) -> None:
    assert accepted.verdict(finding, today) == verdict


@pytest.mark.parametrize("line", ["reason", "where", "id", "until"])
def test_an_acceptance_without_reason_or_day_is_an_error(tmp_path: Path, line: str) -> None:
    entry = re.sub(rf"^{line} = .*\n", "", _ACCEPTED.split("\n\n")[0] + "\n", flags=re.MULTILINE)
    (tmp_path / "accepted.toml").write_text(entry)
    with pytest.raises(KeyError, match=line):
        Accepted.read(tmp_path / "accepted.toml")


def test_what_is_accepted_here_is_about_what_is_looked_at() -> None:
    accepted = Accepted.read()
    looked_at = {*vulnerabilities.PYTHON_LOCKS, *vulnerabilities.GO_MODULES, *vulnerabilities.NPM_LOCKS}
    assert {where for _, where in accepted.findings} | accepted.reported <= looked_at
    assert not accepted.reported & {"requirements.txt", "tools/pulumi", "tools/language-host", "tools/kubelogin"}


def test_every_lock_of_the_checkout_is_looked_at() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]

    def found(accepts: Callable[[Path], bool]) -> set[str]:
        return {str(file.relative_to(ROOT)) for file in files if accepts(file)}

    assert found(lambda file: file.suffix == ".txt" and "uv via" in file.read_text()) == {*vulnerabilities.PYTHON_LOCKS}
    modules = {name.removesuffix("/go.mod") for name in found(lambda file: file.name == "go.mod")}
    assert modules == {*vulnerabilities.GO_MODULES}
    packages = {name.removesuffix("/package-lock.json") for name in found(lambda f: f.name == "package-lock.json")}
    assert packages == {*vulnerabilities.NPM_LOCKS}


def test_pypis_findings_have_package_version_and_fix() -> None:
    answer = {
        "dependencies": [
            {"name": "idna", "version": "3.20", "vulns": []},
            {"name": "starlette", "version": "0.40.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["0.40.1"]}]},
            {"name": "wheel", "version": "0.1", "vulns": [{"id": "PYSEC-2", "fix_versions": []}]},
        ]
    }
    assert list(vulnerabilities._python_findings("lock.txt", done(json.dumps(answer)))) == [
        KnownVulnerability("PYSEC-1", "lock.txt", "starlette 0.40.0, fixed in 0.40.1"),
        KnownVulnerability("PYSEC-2", "lock.txt", "wheel 0.1, fixed in no version"),
    ]


def test_a_package_that_pypi_does_not_know_is_an_error() -> None:
    answer = {"dependencies": [{"name": "idna", "skip_reason": "Dependency not found on PyPI"}]}
    with pytest.raises(AuditError, match="idna: Dependency not found on PyPI"):
        list(vulnerabilities._python_findings("lock.txt", done(json.dumps(answer))))
    with pytest.raises(AuditError, match=r"lock\.txt: ERROR: no route"):
        list(vulnerabilities._python_findings("lock.txt", done("", "\nERROR: no route\n", 1)))


def message(osv: str, *, function: str | None) -> dict[str, Any]:
    """A finding as govulncheck prints it: with a function only if that is called."""
    frame = {"module": "google.golang.org/grpc", "version": "v1.57.0", "package": "google.golang.org/grpc"}
    called = {"function": function} if function else {}
    return {"finding": {"osv": osv, "fixed_version": "v1.82.1", "trace": [{**frame, **called}, {"module": "x"}]}}


def test_of_gos_findings_those_count_whose_code_is_called_each_once() -> None:
    messages = [
        {"config": {"protocol_version": "v1.0.0"}},
        {"osv": {"id": "GO-2026-6061"}},
        message("GO-2026-6061", function=None),
        message("GO-2026-6061", function="Serve"),
        message("GO-2026-6061", function="Stop"),
        message("GO-2026-2", function=None),
    ]
    printed = "\n".join(json.dumps(line, indent=2) for line in messages) + "\n"
    assert list(vulnerabilities._go_findings("tools/pulumi", printed)) == [_FOUND]
    assert list(vulnerabilities._go_findings("tools/pulumi", " \n")) == []


def test_npms_findings_are_the_advisories_not_who_depends_on_them() -> None:
    advisory = {"url": "https://github.com/advisories/GHSA-1", "title": "Reads too much", "range": "<2.0.0"}
    answer = {"vulnerabilities": {"jws": {"via": [advisory]}, "jsonwebtoken": {"via": ["jws"]}}}
    assert list(vulnerabilities._npm_findings("folder", done(json.dumps(answer), code=1))) == [
        KnownVulnerability("GHSA-1", "folder", "jws <2.0.0: Reads too much")
    ]


@pytest.mark.parametrize("printed", ['{"message": "405 Method Not Allowed"}', ""])
def test_a_registry_that_knows_no_advisories_is_an_error(printed: str) -> None:
    with pytest.raises(AuditError, match="405 Method Not Allowed"):
        list(vulnerabilities._npm_findings("folder", done(printed, "405 Method Not Allowed", 1)))


def _nothing() -> Iterator[KnownVulnerability]:
    yield from ()


def _one() -> Iterator[KnownVulnerability]:
    yield KnownVulnerability("GO-2026-1", "tools/pulumi", "grpc")


def _unknown() -> Iterator[KnownVulnerability]:
    raise AuditError("no route")
    yield


@pytest.mark.parametrize(
    ("part", "code", "said"),
    [
        (_nothing, 0, "audit: nothing that is not accepted"),
        (_one, 1, "tools/pulumi: GO-2026-1: grpc: FAILS"),
        (_unknown, 1, "audit: go: no route"),
    ],
)
def test_the_exit_code_is_0_only_if_everything_was_looked_at(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    part: Callable[[], Iterator[KnownVulnerability]],
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(vulnerabilities, "_PARTS", {"go": part})
    assert main() == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert main(["rust"]) == 1
