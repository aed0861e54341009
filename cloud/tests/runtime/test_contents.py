"""`python -m localcloud contents`: kind and key of everything there is, and no value of it."""

from __future__ import annotations

import json
import subprocess
import sys

from localcloud.core.clouds import LocalEnvironment
from tests.source import PACKAGES


def test_each_document_is_a_line_with_kind_and_key(local_cloud: LocalEnvironment) -> None:
    command = [sys.executable, "-m", "localcloud", "--state-dir", local_cloud.state_dir, "contents"]
    done = subprocess.run(command, cwd=PACKAGES, capture_output=True, text=True, check=True)
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]

    assert ("deployer", "deployer") in found
    assert any(kind == "arm" and key.startswith("/subscriptions/") for kind, key in found)
    assert found == sorted(set(found))
