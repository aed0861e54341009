"""`pip install` of the clone, as a Pulumi program of one's own does it: both packages can be imported, and no other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

pytestmark = pytest.mark.clients


def test_components_and_identity_are_installed_and_import_without_the_clone(tmp_path: Path) -> None:
    clone, packages = tmp_path / "clone", tmp_path / "packages"
    clone.mkdir()
    for name in ("pyproject.toml", "components", "identity", "tools"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, clone / name)
        else:
            shutil.copy(ROOT / name, clone / name)

    options = ["--quiet", "--no-deps", "--target", str(packages)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(clone)], check=True)
    script = (
        f"import sys; sys.path.insert(0, {str(packages)!r}); import components.program as found; print(found.__file__)"
    )
    done = subprocess.run([sys.executable, "-Ic", script], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert Path(done.stdout.strip()) == packages / "components/program.py"
    assert {each.name for each in packages.iterdir() if each.suffix != ".dist-info"} == {"components", "identity"}
