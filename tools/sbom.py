"""The bill of materials: everything that others have made and that this checkout installs, as CycloneDX 1.6 (ECMA-424).

`make sbom` writes `sbom.cdx.json` out of the files that pin it: Python's locks, go.mod and go.sum, npm's lock,
tools/checksums.txt, the workflows and the Containerfile. The same checkout gives the same file. CycloneDX's own library
checks its form against the schema; an environment of its own has that library.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tools import clients
from tools.downloads import CHECKSUMS, checksums
from tools.steps import ROOT, ProcessError, SetupError, run
from tools.vulnerabilities import GO_MODULES, NPM_LOCKS, PYTHON_LOCKS

FILE: Final = ROOT / "sbom.cdx.json"
_CONTAINERFILE: Final = "identity/credentials/Containerfile"
_VALIDATE: Final = """\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1], encoding="utf-8").read())
sys.exit(f"{sys.argv[1]} is no CycloneDX 1.6: {found}" if found else 0)
"""


@dataclass(frozen=True)
class Component:
    """One component in one version, as one file pins it.

    Attributes:
        purl: package URL, which is its identity (https://github.com/package-url/purl-spec).
        hashes: pairs of CycloneDX's name of an algorithm and the value in hex, one for each file that is accepted.
        sum: of a Go module, its line in go.sum, which is a hash of the files and not of an archive.
    """

    purl: str
    name: str
    version: str
    where: str
    kind: str = "library"
    hashes: tuple[tuple[str, str], ...] = ()
    sum: str = ""


def main(file: Path = FILE) -> int:
    """Write the bill, check its form; returns the exit code."""
    document = bill(parts())
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    try:
        validate(file)
    except (ProcessError, SetupError) as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    print(f"sbom: {len(document['components'])} components in {file.name}")
    return 0


def validate(file: Path) -> None:
    """Compare a bill with CycloneDX's strict schema; raises ProcessError, or SetupError without the library."""
    run([clients.audit() / "python", "-c", _VALIDATE, file])


def parts() -> Iterator[Component]:
    """Everything that is pinned, file by file."""
    for lock in PYTHON_LOCKS:
        yield from _python(lock)
    for module in GO_MODULES:
        yield from _go(module)
    for folder in NPM_LOCKS:
        yield from _npm(f"{folder}/package-lock.json")
    yield from _archives()
    for workflow in sorted((ROOT / ".github/workflows").iterdir()):
        yield from _actions(str(workflow.relative_to(ROOT)))
    yield from _images()


def bill(found: Iterable[Component]) -> dict[str, Any]:
    """The CycloneDX document; what several files pin in one version is one component that names them all."""
    components: dict[str, dict[str, Any]] = {}
    for part in sorted(set(found), key=lambda pinned: (pinned.purl, pinned.where)):
        component = components.setdefault(part.purl, _component(part))
        component["properties"].append({"name": "idstack:pinned-by", "value": part.where})
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": project["name"],
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": list(components.values()),
        "dependencies": [{"ref": project["name"], "dependsOn": list(components)}],
    }


def _component(part: Component) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": part.kind,
        "bom-ref": part.purl,
        "name": part.name,
        "version": part.version,
        "purl": part.purl,
        "properties": [{"name": "idstack:go.sum", "value": part.sum}] if part.sum else [],
    }
    if part.hashes:
        listed = [{"alg": algorithm, "content": value} for algorithm, value in part.hashes]
        component["externalReferences"] = [{"type": "distribution", "url": part.purl, "hashes": listed}]
    return component


def _python(lock: str) -> Iterator[Component]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    for name, version, rest in re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==(\S+)(.*(?:\n .*)*)", text, re.MULTILINE):
        hashes = tuple(("SHA-256", value) for value in re.findall(r"--hash=sha256:([0-9a-f]{64})", rest))
        yield Component(f"pkg:pypi/{name.lower().replace('_', '-')}@{version}", name, version, lock, hashes=hashes)


def _go(module: str) -> Iterator[Component]:
    text = (ROOT / module / "go.mod").read_text(encoding="utf-8")
    lines = (ROOT / module / "go.sum").read_text(encoding="utf-8").splitlines()
    sums = {(name, version): value for name, version, value in map(str.split, lines)}
    replaced = {old: new for old, *new in re.findall(r"^\t(\S+) => (\S+) (\S+)$", text, re.MULTILINE)}
    for name, version in re.findall(r"^(?:require |\t)(\S+) (v\S+)(?: // indirect)?$", text, re.MULTILINE):
        name, version = replaced.get(name, (name, version))
        purl = f"pkg:golang/{quote(name)}@{quote(version)}"
        yield Component(purl, name, version, f"{module}/go.mod", sum=sums.get((name, version), ""))


def _npm(lock: str) -> Iterator[Component]:
    packages = json.loads((ROOT / lock).read_text(encoding="utf-8"))["packages"]
    for path, package in packages.items():
        if path:
            name, version = path.rpartition("node_modules/")[2], package["version"]
            value = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
            yield Component(f"pkg:npm/{quote(name)}@{version}", name, version, lock, hashes=(("SHA-512", value),))


def _archives() -> Iterator[Component]:
    for archive, checksum in checksums().items():
        match = re.fullmatch(r"(pulumi(?:-resource-[a-z-]+)?)-v([\d.]+)-.*", archive)
        assert match is not None, archive
        name, version = match.groups()
        purl = f"pkg:generic/{name}@{version}?checksum=sha256:{checksum}&file_name={archive}"
        where = str(CHECKSUMS.relative_to(ROOT))
        yield Component(purl, name, version, where, kind="application", hashes=(("SHA-256", checksum),))


def _actions(workflow: str) -> Iterator[Component]:
    text = (ROOT / workflow).read_text(encoding="utf-8")
    for name, commit, version in re.findall(r"uses: ([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # v(\S+)", text):
        yield Component(f"pkg:github/{name}@{commit}", name, version, workflow, kind="application")


def _images() -> Iterator[Component]:
    text = (ROOT / _CONTAINERFILE).read_text(encoding="utf-8")
    for name, tag, digest in re.findall(r"^FROM docker\.io/(\S+):(\S+)@(sha256:[0-9a-f]{64})", text, re.MULTILINE):
        purl = f"pkg:docker/{name}@{quote(digest)}?tag={tag}"
        yield Component(purl, name, tag, _CONTAINERFILE, kind="container")


if __name__ == "__main__":
    sys.exit(main())
