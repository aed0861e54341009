"""The whole program as the language host runs it, and one stack that is shared by all tests that only read it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from localcloud.testing.hosts import Serve
from tests.unit import access_world
from tests.unit.access_world import FakeApiServer
from tests.unit.components import world
from tests.unit.components.existing_cluster import ExistingClusterScenario
from tests.unit.components.program import Program, run_program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.identity.credentials.world import certificate, document


@pytest.fixture(scope="package")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs `__main__.py` in an empty folder with a kubeconfig.

    `invokes` are the lookups' answers, `options` those of `run`. With `lookups_only` the program ends before it builds
    the stack, which takes most of its time. `file` is another program instead. All other keywords are changes of the
    configuration.
    """
    folder = tmp_path_factory.mktemp("project")
    (folder / "kubeconfig").write_text(world.KUBECONFIG, encoding="utf-8")
    return partial(run_program, folder)


@pytest.fixture(scope="package")
def stack(program: Program) -> RecordingMonitor:
    """The stack of `world` with one hosted cluster, the cluster side included."""
    return program()


@pytest.fixture(scope="package")
def two_clusters(program: Program) -> RecordingMonitor:
    """The stack of `world` with the hosted clusters `hc1` and `hc2`; HyperShift's operators write the cluster side."""
    return program(hostedClusters=[world.hosted_cluster(), world.SECOND_CLUSTER], clusterSide="hypershift")


@pytest.fixture(scope="package")
def msi_document() -> str:
    """The image registry's credential document as the MSI data plane issues it."""
    return document(certificate(), tenant_id=world.TENANT, client_id=world.REGISTRY["clientId"])


@pytest.fixture
def existing_cluster(
    program: Program, serve_plain: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ExistingClusterScenario:
    """The cluster's API server runs on this machine; programs that sign in are on the PATH."""
    folder = access_world.program(tmp_path / "bin")
    access_world.program(folder, "kubelogin")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    api = FakeApiServer()
    return ExistingClusterScenario(program, api, serve_plain(api.app()))
