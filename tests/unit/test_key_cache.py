"""The tests' cache of private keys: one object for each document, and no more leniency than without it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from jwt.algorithms import RSAAlgorithm

from identity.credentials.certificate import issue
from localcloud.testing.key_cache import keys_loaded_once

_NO_KEY = b"-----BEGIN PRIVATE KEY-----\nbm9uZQ==\n-----END PRIVATE KEY-----\n"


def test_a_key_is_loaded_once_for_all_callers() -> None:
    pem = issue("once", not_before=datetime.now(UTC), lifetime=timedelta(days=1)).private_key_pem.encode()
    with keys_loaded_once():
        first = serialization.load_pem_private_key(pem, None)

        assert serialization.load_pem_private_key(bytearray(pem), password=None) is first
        assert RSAAlgorithm(RSAAlgorithm.SHA256).prepare_key(pem) is first


def test_a_key_that_is_none_is_refused_each_time() -> None:
    with keys_loaded_once():
        for _ in range(2):
            with pytest.raises(ValueError, match=r"PEM|deserialize"):
                serialization.load_pem_private_key(_NO_KEY, None)
