"""The private keys of this process: from the issue of a certificate until the vault has it, and nowhere else.

A plugin lives for one command of the engine. A key that did not reach the vault in it is lost on purpose: the next run
issues the certificate again (`identity/credentials/schedule.py`).
"""

from __future__ import annotations

from identity.credentials.certificate import IssuedCertificate

_ISSUED: dict[str, IssuedCertificate] = {}


def remember(issued: IssuedCertificate) -> None:
    """Keep a certificate with its key."""
    _ISSUED[issued.thumbprint] = issued


def find(thumbprint: str) -> IssuedCertificate | None:
    """The certificate with its key; None if another process issued it, or the vault has it."""
    return _ISSUED.get(thumbprint)


def forget(thumbprint: str) -> None:
    """Drop the key."""
    _ISSUED.pop(thumbprint, None)
