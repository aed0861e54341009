"""The two keys of a storage account: created at the first request, kept sealed, deleted with the account."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from typing import Final

from localcloud.core.store import Store

_NAMES: Final = ("key1", "key2")
_KIND: Final = "storage-keys"
_KEY_BYTES: Final = 64


@dataclass(frozen=True)
class AccountKeys:
    """The keys of every account, each the base64 text of 64 bytes."""

    store: Store

    def of(self, account: str) -> dict[str, str]:
        """The account's keys by their names, key1 first."""
        with self.store.transaction():
            known = self.store.get(_KIND, account)
            if known is None:
                known = {name: self.store.seal(_new_key()) for name in _NAMES}
                self.store.put(_KIND, account, known)
        return {name: self.store.unseal(known[name]) for name in _NAMES}

    def forget(self, account: str) -> None:
        """Remove the keys; another account of the name gets others."""
        self.store.delete(_KIND, account)


def _new_key() -> str:
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
