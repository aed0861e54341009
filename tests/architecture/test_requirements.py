"""The locks have what a person asked for; that all of it has hashes, `test_supply_chain.py` holds."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import ROOT

WANTED: Final = [
    Requirement(line.partition("#")[0])
    for line in (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
    if line.partition("#")[0].strip()
]
LOCKS: Final = ("requirements.txt", "cloud/requirements.txt")


def locked(lock: str) -> list[str]:
    """The entries of a lock: a pin each, and the lines that belong to it."""
    return re.findall(r"^(\S.*?==.*(?:\n .*)*)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)


def pins(lock: str = LOCKS[0]) -> dict[str, Requirement]:
    """The lock's entries by package, as `uv pip sync` and `pip install -r` read them."""
    parsed = (Requirement(entry.partition("\\")[0]) for entry in locked(lock))
    return {canonicalize_name(pin.name): pin for pin in parsed}


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_each_requirement_is_pinned_to_a_version_it_allows(wanted: Requirement) -> None:
    pin = pins()[canonicalize_name(wanted.name)]
    [exact] = pin.specifier
    assert exact.operator == "=="
    assert wanted.specifier.contains(exact.version), "run `make lock`"


def test_an_azure_native_that_replaces_what_it_imports_is_not_allowed() -> None:
    """`requirements.in` says what the releases before this one do; `pyproject.toml` repeats its bounds."""
    [azure_native] = [wanted for wanted in WANTED if wanted.name == "pulumi-azure-native"]
    assert not azure_native.specifier.contains("3.28.99")


def test_the_local_clouds_lock_has_what_it_asks_for_as_the_program_has_it() -> None:
    project = tomllib.loads((ROOT / "cloud/pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = pins(LOCKS[1])

    assert {canonicalize_name(Requirement(dependency).name) for dependency in project["dependencies"]} <= set(own)
    assert {name: pin.specifier for name, pin in own.items()} == {name: pins()[name].specifier for name in own}


def test_the_packages_agree_so_that_any_installer_resolves_the_lock() -> None:
    """`pulumi install` and Pulumi Deployments run pip, which refuses a lock that contradicts a package's own demand."""
    check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    assert not check.returncode, check.stdout


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert not re.findall(r"index-url|https?://", text), "where packages come from is each machine's own setting"
