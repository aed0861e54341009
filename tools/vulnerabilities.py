"""What is known of vulnerabilities in the locks: `make audit`. Needs PyPI's, Go's and npm's own services.

Python: pip-audit, for each lock. Go: govulncheck, for the code that each pinned command calls. JavaScript: npm audit.
What is accepted for a while is in tools/audit/accepted.toml, each with a reason and a day.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from tools import clients, golang, pinned
from tools.steps import ROOT, SetupError

_ACCEPTED: Final = ROOT / "tools/audit/accepted.toml"
PYTHON_LOCKS: Final = (
    "requirements.txt",
    "identity/credentials/requirements-probe.txt",
    "tools/go/requirements.txt",
    "tools/audit/requirements.txt",
    "localcloud/requirements.txt",
    "tests/clients/azure-cli.txt",
    "tests/clients/python.txt",
    "tests/clients/azure-models.txt",
)
# Module, and which packages of it are looked at: the commands it pins, or its own program.
GO_MODULES: Final[Mapping[str, str]] = {
    "tools/pulumi": "tool",
    "tools/language-host": "tool",
    "tools/kubelogin": "github.com/Azure/kubelogin",
    "tools/actionlint": "tool",
    "tools/promtool": "tool",
    "tools/govulncheck": "tool",
    "tools/kube-apiserver": "tool",
    "tools/etcd": "go.etcd.io/etcd/server/v3",
    "tests/clients/azure-sdk-for-go": ".",
    "tests/clients/go-azure-sdk": ".",
    "tests/e2e/azidentity": ".",
    "tests/e2e/msi-dataplane": ".",
}
NPM_LOCKS: Final = ("tests/clients/javascript", "tests/browser/driver")
_SCANNER: Final = ROOT / "tools/govulncheck"
_SCANNER_MODULE: Final = "golang.org/x/vuln"


@dataclass(frozen=True)
class KnownVulnerability:
    """One vulnerability: its id, where (a lock or a module's folder), and what has it."""

    id: str
    where: str
    what: str


@dataclass(frozen=True)
class Accepted:
    """What fails nothing: single findings until a day, by id and place, and places that are only reported on."""

    findings: Mapping[tuple[str, str], date] = field(default_factory=dict)
    reported: frozenset[str] = frozenset()

    @classmethod
    def read(cls, file: Path = _ACCEPTED) -> Accepted:
        """Raises KeyError for an entry without reason, place, id or day."""
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        findings, reported = {}, set()
        for entry in document.get("accepted", []):
            assert entry["reason"]
            findings[entry["id"], entry["where"]] = entry["until"]
        for entry in document.get("reported", []):
            assert entry["reason"]
            reported.add(entry["where"])
        return cls(findings, frozenset(reported))

    def verdict(self, finding: KnownVulnerability, today: date) -> str:
        """`FAILS`, or why it does not."""
        if finding.where in self.reported:
            return "reported only"
        until = self.findings.get((finding.id, finding.where))
        if until is None:
            return "FAILS"
        return f"accepted until {until}" if today < until else f"FAILS: was accepted until {until}"


class AuditError(Exception):
    """A service did not answer, or does not know a package: nothing is known, which is not nothing found."""


def main(parts: Sequence[str] = ()) -> int:
    """Audit these parts, by default all; returns 1 if something is found that is not accepted, or not known."""
    if unknown := set(parts) - set(_PARTS):
        print(f"audit: unknown parts: {', '.join(sorted(unknown))}; known are {', '.join(_PARTS)}", file=sys.stderr)
        return 1
    accepted, today, code = Accepted.read(), datetime.now(UTC).date(), 0
    for name in parts or _PARTS:
        try:
            for finding in _PARTS[name]():
                verdict = accepted.verdict(finding, today)
                print(f"{finding.where}: {finding.id}: {finding.what}: {verdict}")
                code = max(code, int(verdict.startswith("FAILS")))
        except (AuditError, SetupError) as error:
            print(f"audit: {name}: {error}", file=sys.stderr)
            code = 1
    print("audit: something is to be done, see above" if code else "audit: nothing that is not accepted")
    return code


def python() -> Iterator[KnownVulnerability]:
    """What PyPI knows of the packages in the locks; raises AuditError."""
    command = clients.audit() / "pip-audit"
    for lock in PYTHON_LOCKS:
        # Without `--strict` a package that cannot be looked up would pass.
        options = ["--disable-pip", "--require-hashes", "--strict", "--progress-spinner", "off", "--format", "json"]
        done = _run([command, *options, "--requirement", ROOT / lock])
        yield from _python_findings(lock, done)


def _python_findings(lock: str, done: subprocess.CompletedProcess[str]) -> Iterator[KnownVulnerability]:
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        raise AuditError(f"{lock}: {_last(done)}") from None
    for package in packages:
        if "vulns" not in package:
            raise AuditError(f"{lock}: {package['name']}: {package.get('skip_reason', 'was skipped')}")
        for vuln in package["vulns"]:
            fixed = ", ".join(vuln["fix_versions"]) or "no version"
            yield KnownVulnerability(vuln["id"], lock, f"{package['name']} {package['version']}, fixed in {fixed}")


def go() -> Iterator[KnownVulnerability]:
    """What Go's database knows of the code that the modules call; raises AuditError."""
    scanner = golang.build_pinned("audit", _SCANNER, _SCANNER_MODULE, f"{_SCANNER_MODULE}/cmd/govulncheck")
    for module, packages in GO_MODULES.items():
        done = _run([scanner, "-C", ROOT / module, "-format", "json", packages], pinned.go_environment())
        if done.returncode != 0:
            raise AuditError(f"{module}: {_last(done)}")
        yield from _go_findings(module, done.stdout)


def _go_findings(module: str, printed: str) -> Iterator[KnownVulnerability]:
    """Of each vulnerability that is called, once; what is imported or required and never called is not one."""
    seen = set()
    for message in _documents(printed):
        finding = message.get("finding")
        if finding and finding["trace"][0].get("function") and finding["osv"] not in seen:
            seen.add(finding["osv"])
            at, fixed = finding["trace"][0], finding.get("fixed_version") or "no version"
            yield KnownVulnerability(finding["osv"], module, f"{at['module']} {at['version']}, fixed in {fixed}")


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON documents of a text, one after another."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        yield document


def npm() -> Iterator[KnownVulnerability]:
    """What npm's registry knows of the packages in the locks; raises AuditError."""
    for folder in NPM_LOCKS:
        done = _run(["npm", "audit", "--package-lock-only", "--json", "--prefix", ROOT / folder])
        yield from _npm_findings(folder, done)


def _npm_findings(folder: str, done: subprocess.CompletedProcess[str]) -> Iterator[KnownVulnerability]:
    try:
        document = json.loads(done.stdout)
    except ValueError:
        raise AuditError(f"{folder}: {_last(done)}") from None
    if "vulnerabilities" not in document:
        raise AuditError(f"{folder}: {document.get('message', 'npm says nothing')}")
    for name, package in document["vulnerabilities"].items():
        for advisory in package["via"]:
            if isinstance(advisory, dict):
                yield KnownVulnerability(
                    advisory["url"].rpartition("/")[2], folder, f"{name} {advisory['range']}: {advisory['title']}"
                )


def _run(command: Sequence[object], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [str(part) for part in command],
            env={**(os.environ if environment is None else environment)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise AuditError(f"{command[0]} cannot be started: {error}") from None


def _last(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"code {done.returncode}, without a word"


_PARTS: Final[Mapping[str, Callable[[], Iterator[KnownVulnerability]]]] = {"python": python, "go": go, "npm": npm}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
