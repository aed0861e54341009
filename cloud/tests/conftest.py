"""A local Azure in memory, one with all of its services, and a whole local cloud in processes of its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from localcloud.core.clouds import LocalEnvironment
from localcloud.testing.arm import vault, world
from localcloud.testing.key_cache import keys_loaded_once
from localcloud.testing.running import running_cloud
from tests.coverage.cloud import cloud
from tests.source import PACKAGES

__all__ = ["cloud", "vault", "world"]

# The duration of an example depends more on the machine than on the code; the same examples in each run.
settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=400, deadline=None, derandomize=True)
settings.load_profile("quick")
pytest_plugins = ["localcloud.testing.fixtures"]


@pytest.fixture(scope="session", autouse=True)
def _keys_loaded_once() -> Iterator[None]:
    with keys_loaded_once():
        yield


@contextmanager
def administered_cloud(folder: Path) -> Iterator[LocalEnvironment]:
    """A local cloud with the seed of the emulated plugins, and a deployer who assigns any role to anybody."""
    seed = yaml.safe_load((PACKAGES / "emulated/seed.yaml").read_text(encoding="utf-8"))
    seed["deployerRoles"].append("User Access Administrator")
    (folder / "seed.yaml").write_text(yaml.safe_dump(seed), encoding="utf-8")
    with running_cloud(folder / "state", folder / "seed.yaml") as environment:
        yield environment


@pytest.fixture(scope="session")
def local_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnvironment]:
    """A running local cloud with its kubelet, shared by all tests of a worker."""
    with administered_cloud(tmp_path_factory.mktemp("local-cloud")) as environment:
        yield environment


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and not among what all tests share: the collector took a third of a program's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
