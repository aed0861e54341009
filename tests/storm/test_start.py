"""The machine loses its power while a local cloud starts for the first time: the next start makes it whole."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from localcloud.testing.running import StateDirectory
from tests.harness import empty_project
from tests.storm.disk import Writes, frozen, image, lose_power

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(("write", "kept"), [(2, 0), (6, 50), (11, 0), (20, 50), (40, 0)])
def test_a_start_that_loses_power_is_finished_by_the_next(write: int, kept: int, tmp_path: Path) -> None:
    stack = empty_project(tmp_path, warm=True)
    before = image(stack.state)
    try:
        with Writes(stack.state) as writes, stack.started(stack.python, "-m", "localcloud", "start") as starting:
            handle = os.pidfd_open(starting.pid)
            assert writes.await_write(write, handle) >= write
            os.close(handle)
            with frozen(stack):
                lost = lose_power(stack, before, writes.replaced, kept / 100)

        stack.local_cloud("start")

        with closing(StateDirectory(stack.state).open_store()) as store:
            assert store.unseal(store.seal("text")) == "text", lost
        stack.prepare()
    finally:
        stack.local_cloud("stop", "--remove")
