"""The store: documents by kind and key, whole transactions, sealed values."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.core.store import SEAL_KEY_BYTES, Store, StoreChanges, seal_key


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
