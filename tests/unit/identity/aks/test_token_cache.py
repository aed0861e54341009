"""Tokens are kept where nobody else can put a file, and no link is followed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from identity.aks.tokens import Token, TokenCache
from identity.azure.errors import LoginRefusedError

NOW = datetime(2026, 11, 25, 8, tzinfo=UTC)


def issued() -> Token:
    return Token("issued", NOW + timedelta(hours=1), NOW + timedelta(minutes=55))


def kept(root: Path) -> Token:
    """The token under `key`, now."""
    return TokenCache(root).token("key", lambda: NOW, issued)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o1777], ids=oct)
def test_a_directory_that_others_may_enter_keeps_no_tokens(tmp_path: Path, mode: int) -> None:
    shared = tmp_path / "shared cache"
    shared.mkdir()
    shared.chmod(mode)

    with pytest.raises(LoginRefusedError, match=rf"mode {mode:04o}\); `chmod 700 '.*/shared cache'` if it is yours"):
        kept(shared)
    assert not list(shared.iterdir())


def test_a_directory_of_somebody_else_keeps_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)

    with pytest.raises(
        LoginRefusedError, match=f"must be a directory of this user with mode 0700 .found: user {owner}"
    ):
        kept(tmp_path / "theirs")


def test_a_lock_is_taken_as_it_is_and_one_that_is_a_link_not_at_all(tmp_path: Path) -> None:
    kept(tmp_path / "before")
    (tmp_path / "before/key.lock").write_text("as it was")
    assert kept(tmp_path / "before").value == "issued"
    assert (tmp_path / "before/key.lock").read_text() == "as it was"

    root, other = tmp_path / "tokens", tmp_path / "other"
    root.mkdir(mode=0o700)
    other.write_text("somebody's own")
    (root / "key.lock").symlink_to(other)

    with pytest.raises(LoginRefusedError, match="a link stands there"):
        kept(root)
    assert other.read_text() == "somebody's own"


def test_a_token_behind_a_link_is_replaced_and_not_used(tmp_path: Path) -> None:
    root, other = tmp_path / "tokens", tmp_path / "other"
    planted = kept(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/key.token").rename(other)
    other.write_text(other.read_text().replace(planted.value, "planted"))
    root.mkdir(mode=0o700)
    (root / "key.token").symlink_to(other)

    assert kept(root).value == "issued"
    assert not (root / "key.token").is_symlink()
    assert "planted" in other.read_text()
