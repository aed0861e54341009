"""TESTING.md: each example passes as a test, and each module of localcloud.testing has a row."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.coverage.tables import code, table
from tests.source import PACKAGES, ROOT, files

PAGE = PACKAGES / "TESTING.md"


def test_every_example_passes(tmp_path: Path) -> None:
    found = re.findall(
        r"^```python( conftest)?\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    for number, (is_conftest, text) in enumerate(found):
        name = "conftest.py" if is_conftest else f"test_example_{number}.py"
        (tmp_path / name).write_text(text, encoding="utf-8")

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (PACKAGES, ROOT)))}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_has_a_row() -> None:
    modules = {file.stem for file in files("localcloud/testing")} - {"__init__"}

    assert {code(row["module"]) for row in table("## Modules", PAGE)} == modules
