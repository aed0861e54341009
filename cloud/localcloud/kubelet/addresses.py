"""Loopback addresses for pods."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from ipaddress import IPv4Address
from typing import Final

# 127.64.0.1 and up: other programs use the low addresses of 127/8 (127.0.0.1, 127.0.0.53, 127.0.1.1).
_FIRST: Final = int(IPv4Address("127.64.0.1"))
_COUNT: Final = int(IPv4Address("127.254.255.254")) - _FIRST


def allocate(uid: str, used: Collection[str]) -> str:
    """An address for the pod with this uid that no other pod uses."""
    start = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8])
    for step in range(_COUNT):
        address = str(IPv4Address(_FIRST + (start + step) % _COUNT))
        if address not in used:
            return address
    raise RuntimeError("every loopback address is taken")
