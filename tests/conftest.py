"""Fixtures for every room: a whole local cloud in processes of its own, and the stack that is up on it."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from localcloud.testing.key_cache import keys_loaded_once
from localcloud.testing.running import LocalEnvironment, running_cloud
from tests.architecture.source import ROOT
from tests.groups import check_group, end_group, group_of, shared
from tests.harness import LocalStack, running_stack
from tests.seeds import extended_seed

# The duration of an example depends more on the machine than on the code. `make nightly` asks for the deep profile.
# Both draw the same examples in each run, so that nothing but a change fails a test; the search profile draws others.
settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=400, deadline=None, derandomize=True)
settings.register_profile("search", max_examples=400, deadline=None, derandomize=False)
settings.load_profile("quick")
_UNITS: Final = ROOT / "tests/unit"
# Folders whose tests are kept out of every other run: they need what this project neither has nor makes, or takes long.
_APART: Final = ("apiserver", "browser", "clients", "consumers", "hypershift", "operator")
# Servers for real clients, and a local Azure in this process.
pytest_plugins = ["localcloud.testing.fixtures"]


def pytest_configure() -> None:
    # A shell starts what runs in the background with SIGINT ignored; the tests of interruptions, and the commands that
    # they start, would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: the tests of a stack wait for its processes, and leave a core idle meanwhile."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session", autouse=True)
def _keys_loaded_once() -> Iterator[None]:
    with keys_loaded_once():
        yield


@pytest.fixture(scope="session")
def local_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnvironment]:
    """A running, seeded local cloud with its kubelet, in a state directory of its own; shared by all tests.

    Its deployer may assign any role.
    """
    folder = tmp_path_factory.mktemp("local-cloud")
    seed = extended_seed(folder, deployerRoles=["User Access Administrator"])
    with running_cloud(folder / "state", seed) as environment:
        yield environment


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """The local stack, brought up once for all tests that leave it as they find it."""
    with shared(running_stack(tmp_path_factory.mktemp("stack")), "stack") as stack:
        stack.up()
        yield stack


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End what the tests of a group share, once a test of another group follows."""
    yield
    group = group_of(item.nodeid)
    if nextitem is None or group_of(nextitem.nodeid) != group:
        end_group(group)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker one group after another. (`--dist=loadgroup` of pytest-xdist 3.8 splits groups with pytest 9.2.)"""
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and not among what all tests share: the collector took a third of a program's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups stay together, and stacks come before units."""
    order: dict[str, int] = {}
    for item in items:
        if (folder := item.path.relative_to(ROOT / "tests").parts[0]) in _APART:
            item.add_marker(folder)
        check_group(item)
        order.setdefault(group_of(item.nodeid), len(order))
    items.sort(key=lambda item: (item.path.is_relative_to(_UNITS), order[group_of(item.nodeid)]))
