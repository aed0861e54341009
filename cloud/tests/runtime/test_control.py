"""The daemon creates what the seed has, for a `start` that finds it running: the other one imports no service."""

from __future__ import annotations

import subprocess
import sys

import httpx

from localcloud.core.clouds import LocalEnvironment
from tests.source import PACKAGES


def test_a_start_of_a_cloud_that_runs_imports_none_of_its_services(local_cloud: LocalEnvironment) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "localcloud", "--state-dir", local_cloud.state_dir, "start"]
    done = subprocess.run(command, cwd=PACKAGES, capture_output=True, text=True, check=True)

    assert "runs already" in done.stdout
    assert "seeded already" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "localcloud.runtime.lifecycle" in imported
    assert {name for name in imported if name.startswith(("localcloud.azure", "starlette", "uvicorn", "jwt"))} == set()


def test_a_seed_is_asked_for_by_post_alone(local_cloud: LocalEnvironment) -> None:
    with httpx.Client(base_url=local_cloud.control_endpoint, trust_env=False) as client:
        assert client.get("/seed").status_code == httpx.codes.METHOD_NOT_ALLOWED
        assert client.post("/seed").json() == {"added": 0}
