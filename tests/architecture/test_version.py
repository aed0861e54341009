"""The product has one version, and `pyproject.toml` has it; a policy pack's file alone must repeat it."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import yaml

from provider.__main__ import IdstackProvider
from tests.architecture.source import ROOT


def test_the_command_the_plugin_and_the_policy_pack_have_the_projects_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    printed = subprocess.run([sys.executable, "-m", "ops", "--version"], cwd=ROOT, capture_output=True, text=True)

    assert (printed.stdout, printed.returncode) == (f"idstack {version}\n", 0)
    assert IdstackProvider.version == version
    assert yaml.safe_load((ROOT / "policies/PulumiPolicy.yaml").read_text(encoding="utf-8"))["version"] == version
