"""The whole program as the language host runs it, and one stack that is shared by all tests that only read it."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.components import world
from tests.unit.components.recorder import Recorder, run
from tests.unit.identity.credentials.world import certificate, document

PROJECT = Path(__file__).resolve().parents[3]

Program = Callable[..., Recorder]


@pytest.fixture(scope="package")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs `__main__.py` in an empty folder with a kubeconfig.

    `invokes` are the lookups' answers, `options` those of `run`; all other keywords are changes of the configuration.
    """
    folder = tmp_path_factory.mktemp("project")
    (folder / "kubeconfig").write_text(world.KUBECONFIG, encoding="utf-8")

    def run_program(
        *, invokes: Any = None, options: Any = None, secret_keys: tuple[str, ...] = (), **changes: Any
    ) -> Recorder:
        config = {f"idstack:{key}": value for key, value in world.configuration(**changes).items()}
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.delenv("IDSTACK_LOCAL_ENVIRONMENT", raising=False)
            patch.setenv("PULUMI_CONFIG", json.dumps(config))
            patch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps([f"idstack:{key}" for key in secret_keys]))
            return run(
                lambda: runpy.run_path(str(PROJECT / "__main__.py"), run_name="__main__") and None,
                invokes=world.lookups() if invokes is None else invokes,
                **(options or {}),
            )

    return run_program


@pytest.fixture(scope="package")
def stack(program: Program) -> Recorder:
    """The stack of `world` with one hosted cluster, the cluster side included."""
    return program()


@pytest.fixture(scope="package")
def msi_document() -> str:
    """The image registry's credential document as the MSI data plane issues it."""
    return document(certificate(), tenant_id=world.TENANT, client_id=world.REGISTRY["clientId"])
