"""A loss of power takes what nobody synced, and nothing else."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from localcloud.testing.azure import SEAL_KEY_BYTES, Store
from ops.stack.environment import LocalPaths
from tests.harness import LocalStack
from tests.storm.disk import Writes, frozen, image, lose_power
from tests.storm.processes import kill, outlasting, processes_of


@pytest.fixture
def stack(tmp_path: Path) -> LocalStack:
    stack = LocalStack(tmp_path)
    stack.state.mkdir()
    return stack


@pytest.fixture
def writer(stack: LocalStack) -> Iterator[subprocess.Popen[str]]:
    """A process of the stack that writes a byte into a new directory for each line that it reads."""
    program = (
        "import pathlib, sys; directory = pathlib.Path('.localcloud/new'); directory.mkdir(); print(flush=True)\n"
        "for line in sys.stdin: (directory / line.strip()).write_text('x'); print(flush=True)"
    )
    line = [sys.executable, "-c", program]
    with subprocess.Popen(line, cwd=stack.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _write(writer: subprocess.Popen[str], name: str) -> None:
    assert writer.stdin is not None
    assert writer.stdout is not None
    print(name, file=writer.stdin, flush=True)
    writer.stdout.readline()


def _ready(writer: subprocess.Popen[str]) -> None:
    assert writer.stdout is not None
    writer.stdout.readline()


def test_writes_are_counted_in_new_directories_too_and_logs_are_not(
    stack: LocalStack, writer: subprocess.Popen[str]
) -> None:
    handle = os.pidfd_open(writer.pid)
    with Writes(stack.state) as writes:
        _ready(writer)
        assert writes.await_write(1, handle) == 1, "the directory"
        _write(writer, "daemon.log")
        _write(writer, "file")
        assert writes.await_write(2, handle) >= 2, "made and filled"
        writer.kill()
        assert writes.await_write(1000, handle) < 1000
    os.close(handle)


def test_nothing_of_the_stack_runs_while_it_is_frozen(stack: LocalStack, writer: subprocess.Popen[str]) -> None:
    _ready(writer)
    assert processes_of(stack) == [writer.pid]
    with frozen(stack):
        status = Path(f"/proc/{writer.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert status == "T"
    _write(writer, "file")
    assert (stack.state / "new/file").exists()
    kill(writer.pid)
    assert outlasting(writer.pid) == ""


def test_a_process_that_waits_for_a_stopped_child_counts_as_stopped(stack: LocalStack) -> None:
    """A child of vfork(2), as `subprocess` starts one: its parent cannot stop before it has gone on."""
    program = (
        "import ctypes, os, signal\n"
        "memory = ctypes.create_string_buffer(1 << 20)\n"
        "start = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: os.write(1, b'\\n') and signal.pause())\n"
        "vfork = 0x4000 | signal.SIGCHLD\n"  # CLONE_VFORK of clone(2)
        "ctypes.CDLL(None).clone(start, ctypes.c_void_p(ctypes.addressof(memory) + (1 << 20)), vfork, None)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=stack.root, stdout=subprocess.PIPE, text=True) as parent:
        _ready(parent)
        both = processes_of(stack)
        try:
            with frozen(stack):
                states = {pid: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in both}
        finally:
            kill(*both)
    assert states.pop(parent.pid) == "D"
    assert [*states.values()] == ["T"]


def test_a_new_file_is_cut_unless_synced_and_one_that_replaced_another_is_whole(stack: LocalStack) -> None:
    (stack.state / "old").write_text("earlier")
    (stack.state / "stacks").mkdir()
    (stack.state / "stacks/local.json").write_text("earlier")
    before = image(stack.state)
    (stack.state / "new").write_text("0123456789")
    (stack.state / "seal.key").write_text("0123456789")
    (stack.state / "twice").write_text("0123456789")
    (stack.state / "draft").write_text("later")
    (stack.state / "draft").replace(stack.state / "old")

    paths = LocalPaths(stack.state)
    paths.create()
    passphrase = paths.passphrase.read_text()

    assert lose_power(stack, before, {stack.state / "twice"}, 0.5) == "new has 5 of 10 bytes"
    assert paths.passphrase.read_text() == passphrase
    assert (stack.state / "stacks/local.json").read_text() == "earlier", "the command before synced it"

    assert {path.name: path.read_text() for path in stack.state.iterdir() if path.is_file()} == {
        "new": "01234",
        "old": "later",
        "seal.key": "0123456789",
        "twice": "0123456789",
    }


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_the_local_clouds_store_comes_back_as_it_was_at_some_moment(share: float, stack: LocalStack) -> None:
    with closing(Store(stack.state / "state.sqlite", bytes(SEAL_KEY_BYTES))) as store:
        for number in range(20):
            store.put("copied", f"{number:02}", {})
        with closing(sqlite3.connect(stack.state / "state.sqlite")) as other:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        for number in range(20):
            store.put("before", f"{number:02}", {})
        before = image(stack.state)
        for number in range(20):
            store.put("since", f"{number:02}", {"text": "x" * 500})
        lose_power(stack, before, set(), share)
        left = {path.name: path.read_bytes() for path in stack.state.iterdir()}

    restored = stack.root / "restored"
    restored.mkdir()
    for name, content in left.items():
        (restored / name).write_bytes(content)
    with closing(Store(restored / "state.sqlite", bytes(SEAL_KEY_BYTES))) as store:
        assert len(store.items("copied")) == 20, "a checkpoint has synced it"
        assert len(store.items("before")) == 20, "it has been there for a while"
        since = [key for key, _ in store.items("since")]
        assert since == [f"{number:02}" for number in range(len(since))]
        assert (len(since) == 20) == (share == 1.0)


def test_a_log_whose_index_was_never_made_counts_whole(tmp_path: Path) -> None:
    made, found = tmp_path / "made", tmp_path / "found"
    for folder in (made, found):
        folder.mkdir()
    with closing(sqlite3.connect(made / "state.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE kept (value)")
        log = (made / "state.sqlite-wal").read_bytes()
    (found / "state.sqlite-wal").write_bytes(log)
    (found / "state.sqlite-shm").write_bytes(b"\0\0\0")

    _, end = image(found).log
    assert end == len(log) > 0
