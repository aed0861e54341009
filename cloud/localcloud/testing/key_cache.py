"""Loads each private key once in a process that signs in often.

OpenSSL tests the primes of an RSA key whenever it is loaded, which takes 40 ms for 2048 bits, and azure-identity and
PyJWT both load the key for each sign-in: two thirds of the CPU of the tests that sign in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType

import jwt.algorithms
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


@contextmanager
def keys_loaded_once() -> Iterator[None]:
    """Within the block each key is loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        load_keys_once(patch.setattr)
        yield


def load_keys_once(set_attribute: Callable[[ModuleType, str, object], None] = setattr) -> None:
    """From now on a PEM document that was loaded before gives the same key object; a bad one fails each time."""
    original = serialization.load_pem_private_key

    @cache
    def load(data: bytes, password: bytes | None, skip_validation: bool) -> PrivateKeyTypes:
        return original(data, password, unsafe_skip_rsa_key_validation=skip_validation)

    def load_pem_private_key(
        data: bytes, password: bytes | None, backend: object = None, *, unsafe_skip_rsa_key_validation: bool = False
    ) -> PrivateKeyTypes:
        return load(bytes(data), password, unsafe_skip_rsa_key_validation)

    for module in (serialization, jwt.algorithms):
        set_attribute(module, "load_pem_private_key", load_pem_private_key)
