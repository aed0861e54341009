"""The identity stack in another Pulumi program: the example, and the package that it imports."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from tests.architecture.source import ROOT, files, imports
from tests.unit.components.program import PROJECT, Program

_EXAMPLE = PROJECT / "examples/another_program"
_PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Distributions by the first part of their modules' names, where the two differ.
_DISTRIBUTIONS = {
    "azure": {"azure-core", "azure-identity"},
    "jwt": {"pyjwt"},
    "yaml": {"pyyaml"},
    "pydantic_core": set(),
}
# What the probe and the loader alone need; their lock is `identity/credentials/requirements-probe.txt`.
_OF_THE_PROBE = {"prometheus_client", "starlette", "uvicorn", "watchdog"}


def test_the_example_has_the_stack_and_a_resource_that_uses_it(program: Program) -> None:
    own = program(file=_EXAMPLE / "__main__.py", options={"project": "another-program"})

    outputs = own.stack_outputs.values
    group = own.one("azure-native:resources:ResourceGroup", "workloads")
    assert group.inputs["tags"] == {"credentials": outputs["keyVaultName"]}
    assert outputs.keys() >= {"hostedClusters", "keyVaultUri"}


def test_the_packages_need_no_other_folder_of_the_clone(tmp_path: Path) -> None:
    for package in _PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        (tmp_path / package).symlink_to(ROOT / package)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import components.program as found; print(found.__file__)"
    )

    done = subprocess.run([sys.executable, "-Ic", script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.stdout.strip(), done.returncode) == (str(tmp_path / "components/program.py"), 0), done.stderr


def test_the_package_needs_what_its_modules_import_in_the_versions_of_the_lock() -> None:
    rooms = ("components", "identity")
    modules = {module.split(".")[0] for room in rooms for file in files(room) for _, module in imports(file)}
    foreign = modules - sys.stdlib_module_names - {*rooms} - _OF_THE_PROBE
    declared = {Requirement(dependency).name: dependency for dependency in _PROJECT["project"]["dependencies"]}
    locked = {line.partition("#")[0].strip() for line in (ROOT / "requirements.in").read_text().splitlines()}

    assert _PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [*rooms]
    assert set(declared.values()) <= locked
    assert declared.keys() == set().union(
        *(_DISTRIBUTIONS.get(module, {module.replace("_", "-")}) for module in foreign)
    )
