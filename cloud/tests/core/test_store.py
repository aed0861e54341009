"""The store: documents by kind and key, whole transactions, sealed values."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.core.store import SEAL_KEY_BYTES, Store, StoreChanges, StoreDamagedError, StoreNotWrittenError, seal_key


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "state.sqlite", bytes(SEAL_KEY_BYTES))
    yield opened
    opened.close()


def test_a_document_comes_back_as_it_was_put_and_is_replaced_whole(store: Store) -> None:
    store.put("arm", "/a", {"name": "first", "tags": {"k": "v"}})
    store.put("arm", "/a", {"name": "second"})

    assert store.get("arm", "/a") == {"name": "second"}
    assert store.get("other", "/a") is None


def test_items_are_those_of_the_kind_below_the_prefix_in_order(store: Store) -> None:
    for key in ("/b/2", "/b/1", "/a", "/c", "/b"):
        store.put("arm", key, {"key": key})
    store.put("other", "/b/3", {})

    assert [key for key, _ in store.items("arm", "/b/")] == ["/b/1", "/b/2"]
    assert len(store.items("arm")) == 5


def test_delete_returns_whether_there_was_a_document(store: Store) -> None:
    store.put("arm", "/a", {})

    assert store.delete("arm", "/a")
    assert not store.delete("arm", "/a")


def test_an_exception_undoes_the_whole_transaction_with_nested_blocks(store: Store) -> None:
    def write_and_fail() -> None:
        with store.transaction():
            store.put("arm", "/a", {"value": 1})
            with store.transaction():
                store.put("arm", "/b", {"value": 1})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()

    assert store.items("arm") == []


def test_a_second_process_sees_what_the_first_has_written(tmp_path: Path, store: Store) -> None:
    other = Store(tmp_path / "state.sqlite", bytes(SEAL_KEY_BYTES))
    store.put("arm", "/a", {"value": 1})

    assert other.get("arm", "/a") == {"value": 1}
    other.close()


def test_a_sealed_value_opens_again_and_never_looks_the_same_twice(store: Store) -> None:
    sealed = store.seal("hunter2")

    assert store.unseal(sealed) == "hunter2"
    assert sealed != store.seal("hunter2")


def test_a_tampered_value_and_another_stores_key_do_not_open(tmp_path: Path, store: Store) -> None:
    sealed = store.seal("hunter2")
    tampered = sealed[:-4] + ("AAA=" if not sealed.endswith("AAA=") else "BBB=")
    other = Store(tmp_path / "other.sqlite", bytes([1] * SEAL_KEY_BYTES))

    with pytest.raises(ValueError, match=r"seal\.key"):
        store.unseal(tampered)
    with pytest.raises(ValueError, match=r"seal\.key"):
        other.unseal(sealed)
    other.close()


def test_the_seal_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    first = seal_key(tmp_path / "seal.key")

    assert seal_key(tmp_path / "seal.key") == first
    assert len(first) == SEAL_KEY_BYTES
    assert stat.S_IMODE((tmp_path / "seal.key").stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "seal.key"]


def test_what_another_connection_commits_is_noticed_once(store: Store, tmp_path: Path) -> None:
    store.put("arm", "/a", {})
    changes = StoreChanges(tmp_path / "state.sqlite")
    noticed = [changes.since_last()]

    store.put("arm", "/a", {"tags": {}})
    noticed += [changes.since_last(), changes.since_last()]
    store.get("arm", "/a")
    noticed.append(changes.since_last())
    with store.transaction():
        store.delete("arm", "/a")
        noticed.append(changes.since_last())
    noticed.append(changes.since_last())
    changes.close()

    assert noticed == [False, True, False, False, False, True]


def _filled(file: Path) -> Store:
    opened = Store(file, bytes(SEAL_KEY_BYTES))
    for number in range(200):
        opened.put("arm", f"/{number:03}", {"text": "x" * 200})
    return opened


def test_a_disk_that_is_full_is_named_and_the_transaction_is_undone(tmp_path: Path) -> None:
    store = _filled(tmp_path / "state.sqlite")
    # What SQLite itself answers when there are no more pages, which also ends its transaction.
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    before = store.listed()

    def fill() -> None:
        with store.transaction():
            for number in range(200):
                store.put("new", f"/{number}", {"text": "x" * 200})

    with pytest.raises(StoreNotWrittenError, match=r"state\.sqlite cannot be written \(No space left on device\)"):
        fill()
    assert store.listed() == before
    store._connection.execute(f"PRAGMA max_page_count = {pages * 9}")
    fill()
    assert len(store.items("new")) == 200


def test_a_file_that_is_read_only_is_named(store: Store) -> None:
    store._connection.execute("PRAGMA query_only = ON")

    with pytest.raises(StoreNotWrittenError, match="Read-only file system"):
        store.put("arm", "/a", {})
    assert store.get("arm", "/a") is None


def test_every_write_fails_while_the_disk_does(store: Store) -> None:
    store.put("arm", "/a", {"value": 1})
    error: list[int | None] = [errno.ENOSPC]
    store.fail_writes(lambda: error[-1])

    for write in (
        lambda: store.put("arm", "/a", {"value": 2}),
        lambda: store.delete("arm", "/a"),
        lambda: store.transaction().__enter__(),
    ):
        with pytest.raises(StoreNotWrittenError, match="free some space") as failed:
            write()
        assert failed.value.number == errno.ENOSPC
    assert store.get("arm", "/a") == {"value": 1}
    error.append(None)
    store.put("arm", "/a", {"value": 2})
    assert store.get("arm", "/a") == {"value": 2}


def test_a_commit_that_fails_leaves_nothing_open(store: Store) -> None:
    error: list[int | None] = [None]
    store.fail_writes(lambda: error[-1])

    def write(then: int | None) -> None:
        with store.transaction():
            store.put("arm", "/a", {"value": 1})
            error.append(then)

    with pytest.raises(StoreNotWrittenError):
        write(errno.EROFS)
    assert store.get("arm", "/a") is None
    error.append(None)
    write(None)
    assert store.get("arm", "/a") == {"value": 1}


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_a_file_that_is_cut_short_is_named_with_what_to_do(tmp_path: Path, kept: float) -> None:
    file = tmp_path / "state.sqlite"
    _filled(file).close()
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * kept)])

    with pytest.raises(StoreDamagedError, match=r"state\.sqlite is damaged .*put a copy of the file back, or remove"):
        Store(file, bytes(SEAL_KEY_BYTES)).check()


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    file.write_bytes(b"not a database " * 100)

    with pytest.raises(StoreDamagedError, match="file is not a database"):
        Store(file, bytes(SEAL_KEY_BYTES))


def test_a_sound_file_passes_the_check(tmp_path: Path) -> None:
    _filled(tmp_path / "state.sqlite").check()


def test_a_seal_key_that_is_cut_short_is_named(tmp_path: Path) -> None:
    file = tmp_path / "seal.key"
    seal_key(file)
    file.write_bytes(file.read_bytes()[:5])

    with pytest.raises(StoreDamagedError, match=r"seal\.key is damaged \(5 bytes, 32 are expected\)"):
        seal_key(file)
