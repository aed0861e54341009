"""The whole program as the language host runs it, and one stack that is shared by all tests that only read it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.unit.components import world
from tests.unit.components.program import run_program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.identity.credentials.world import certificate, document

Program = Callable[..., RecordingMonitor]


@pytest.fixture(scope="package")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs `__main__.py` in an empty folder with a kubeconfig.

    `invokes` are the lookups' answers, `options` those of `run`. With `lookups_only` the program ends before it builds
    the stack, which takes most of its time. All other keywords are changes of the configuration.
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
