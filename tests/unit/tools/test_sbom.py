"""The bill of materials has everything that is pinned, once, with its checksums, in CycloneDX's form."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tools import sbom
from tools.sbom import Component
from tools.steps import ROOT, ProcessError
from tools.vulnerabilities import GO_MODULES, NPM_LOCKS, PYTHON_LOCKS

_PARTS: Final = list(sbom.parts())
_BILL: Final = sbom.bill(_PARTS)


def component(purl: str) -> dict[str, Any]:
    """The component with a package URL that begins so."""
    [found] = [entry for entry in _BILL["components"] if entry["purl"].startswith(purl)]
    return dict(found)


def test_every_file_that_pins_something_has_its_parts_in_it() -> None:
    locks = {
        *PYTHON_LOCKS,
        *(f"{module}/go.mod" for module in GO_MODULES),
        *(f"{folder}/package-lock.json" for folder in NPM_LOCKS),
        "tools/checksums.txt",
        "identity/credentials/Containerfile",
        ".github/workflows/stack.yml",
    }
    assert locks <= {part.where for part in _PARTS}


@pytest.mark.parametrize("lock", PYTHON_LOCKS)
def test_every_package_of_a_lock_is_there_with_all_its_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    found = [part for part in _PARTS if part.where == lock]
    assert len(found) == len(re.findall(r"^[^\s#]", text, re.MULTILINE))
    assert sum(len(part.hashes) for part in found) == text.count("--hash=sha256:")


def test_every_go_module_has_its_line_of_go_sum() -> None:
    found = [part for part in _PARTS if part.where.endswith("go.mod")]
    assert len(found) > 500
    assert not [part for part in found if not part.sum.startswith("h1:")]


def test_what_several_files_pin_is_one_component_that_names_them() -> None:
    purls = [entry["purl"] for entry in _BILL["components"]]
    assert len(purls) == len(set(purls)) < len(_PARTS)
    pinned_by = [property_["value"] for property_ in component("pkg:pypi/cryptography@")["properties"]]
    assert pinned_by == sorted({*pinned_by})
    assert {"requirements.txt", "identity/credentials/requirements-probe.txt"} <= {*pinned_by}


def test_the_engine_is_there_as_modules_and_as_an_archive() -> None:
    cli = component("pkg:golang/github.com/pulumi/pulumi/pkg/v3@")
    archive = component(f"pkg:generic/pulumi@{cli['version'].removeprefix('v')}?checksum=sha256:94ba")
    assert archive["externalReferences"][0]["hashes"][0]["alg"] == "SHA-256"


def test_a_scoped_npm_package_keeps_its_scope_and_its_hash_is_hex() -> None:
    identity = component("pkg:npm/%40azure/identity@")
    assert identity["name"] == "@azure/identity"
    [value] = identity["externalReferences"][0]["hashes"]
    assert value["alg"] == "SHA-512"
    assert re.fullmatch(r"[0-9a-f]{128}", value["content"])


def test_the_same_checkout_gives_the_same_bill() -> None:
    assert sbom.bill(reversed(_PARTS)) == _BILL
    assert "timestamp" not in _BILL["metadata"]


@pytest.mark.nightly
def test_the_form_is_cyclonedxs_as_its_own_library_sees_it(tmp_path: Path) -> None:
    assert sbom.main(tmp_path / "sbom.json") == 0
    assert json.loads((tmp_path / "sbom.json").read_text()) == _BILL

    wrong = sbom.bill([Component("pkg:pypi/a@1", "a", "1", "lock.txt", hashes=(("SHA-257", "00"),))])
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    with pytest.raises(ProcessError, match="SHA-257"):
        sbom.validate(tmp_path / "wrong.json")
