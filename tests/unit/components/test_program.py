"""The start of the program, and the identity stack in another Pulumi program."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pulumi
import pytest
from packaging.requirements import Requirement

from components.program import program as whole_program
from identity.checkout import git
from identity.settings import ConfigurationError
from identity.settings.schema.problems import for_stack
from tests.architecture.source import ROOT, files, imports
from tests.unit.components import world
from tests.unit.components.program import PROJECT, Program, run_program


def test_a_refused_configuration_is_one_message_and_no_resource(program: Program) -> None:
    wrong = {"tenantId": None, "vault": {"name": "kv_dev", "defaultAction": "Allow"}, "clusterSide": "hypershft"}
    with pytest.raises(ConfigurationError) as refused:
        world.settings(**wrong)

    recorder = program(**wrong, options={"refused": True})

    assert str(recorder.failure) == for_stack(str(refused.value), "test")
    assert str(recorder.failure).startswith("The stack's configuration has 3 problems; nothing was changed.\n\n")
    assert (recorder.registered, recorder.invoked, recorder.stack_outputs.values) == ([], [], {})
    # The language host shows a RunError as it is, without what it came from.
    assert isinstance(recorder.failure, pulumi.RunError)
    assert (recorder.failure.__cause__, recorder.failure.__suppress_context__) == (None, True)


def test_the_language_host_adds_no_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("components.program.identity_stack", AsyncMock(side_effect=pulumi.RunError("refused")))
    monkeypatch.setattr("pulumi.log.error", shown.append)

    with pytest.raises(SystemExit) as ended:
        asyncio.run(whole_program())

    assert (ended.value.code, shown) == (32, ["refused"])


@pytest.mark.parametrize(("recorded", "is_refused"), [({"commit": "a" * 40}, True), ({}, False)])
def test_a_recorded_commit_is_not_dropped_because_git_does_not_read_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, str], is_refused: bool
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "kubeconfig").write_text(world.KUBECONFIG, encoding="utf-8")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    last = world.lookups(readStackOutputs={"outputs": recorded, "secretOutputNames": []})

    recorder = run_program(tmp_path, invokes=last, options={"refused": is_refused}, lookups_only=True)

    assert (recorder.failure is not None) is is_refused
    if is_refused:
        assert recorder.names() == []
        assert "git config --global --add safe.directory" in str(recorder.failure)
        assert f"the stack records the commit {'a' * 40}" in str(recorder.failure)


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
