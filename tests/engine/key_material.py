"""Searches everything that a stack leaves behind for the private keys in its vault, in whatever form they are written.

A key is searched by its secret numbers and by the lines of its PEM, plain and in two more layers of base64 or
hexadecimal: PEM in base64 is a document's `client_secret`, and the vault may hold that document encoded once more. A
key that is bytes, as that of etcd, is searched whole.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from identity.credentials.service_account_key import make_etcd_key
from localcloud.testing.azure import SECRET_KIND
from localcloud.testing.running import StateDirectory
from tests.harness import LocalStack

_WINDOW: Final = 24
"""Bytes by which a key is recognised: 18 bytes of it in base64."""
_STEP: Final = 16
"""Bytes between the places of a text that are looked at: each form of a key has a window for every remainder."""
_LENGTH_OF_ETCDS_KEY: Final = len(make_etcd_key())
_LINE: Final = 64  # RFC 7468: the characters of a full line of PEM
# What stands between the characters of a key in JSON, PEM and OpenSSL's text.
_BETWEEN: Final = re.compile(rb"\\+[nrt]|[\s:]")
# Ciphertext of Pulumi's passphrase provider (`pkg/secrets/passphrase`, `sdk/go/common/resource/config/crypt.go`).
_CIPHERTEXT: Final = re.compile(r"v1:([A-Za-z0-9+/]{16}):([A-Za-z0-9+/]+={0,2})")
_SALT: Final = re.compile(r"v1:([A-Za-z0-9+/]+=*):v1:[A-Za-z0-9+/]{16}:[A-Za-z0-9+/]+=*")
_ITERATIONS: Final = 1_000_000
_PAUSE: Final = 0.1


Key: TypeAlias = RSAPrivateKey | bytes


class KeySearch:
    """Finds the given keys, by name, in anything."""

    def __init__(self, keys: Mapping[str, Key]) -> None:
        rsa = {name: key for name, key in keys.items() if isinstance(key, RSAPrivateKey)}
        short = {name: key for name, key in keys.items() if isinstance(key, bytes)}
        self._windows = {window: name for name, key in rsa.items() for window in _windows(key)}
        self._whole = {form: name for name, key in short.items() for form in _forms(key)}

    def names_in(self, content: bytes) -> set[str]:
        """The names of the keys of which a part is in `content`."""
        content = _unpacked(content)
        texts = (content, _BETWEEN.sub(b"", content))
        by_window = {
            self._windows[window]
            for text in texts
            for begin in range(0, len(text) - _WINDOW + 1, _STEP)
            if (window := text[begin : begin + _WINDOW]) in self._windows
        }
        return by_window | {name for form, name in self._whole.items() if any(form in text for text in texts)}

    def places_in(self, everything: Iterable[tuple[str, bytes]]) -> dict[str, set[str]]:
        """The names of the keys found, by place, without the places that hold none."""
        return {place: found for place, content in everything if (found := self.names_in(content))}


def vault_keys(stack: LocalStack) -> dict[str, Key]:
    """The keys in the local cloud's vaults, disabled and soft-deleted ones, too.

    By `<vault>/<secret>/<version>`; a key that several secrets hold has the name of the first.
    """
    store = StateDirectory(stack.state).open_store()
    try:
        found: dict[object, tuple[str, Key]] = {}
        for secret, document in store.items(SECRET_KIND):
            for version in document["versions"]:
                key = _key_of(store.unseal(version["sealed"]))
                known = key if isinstance(key, bytes) else key.public_key().public_numbers().n
                found.setdefault(known, (f"{secret}/{version['version']}", key))
        return dict(found.values())
    finally:
        store.close()


def everything(stack: LocalStack, printed: Mapping[str, str | bytes]) -> Iterator[tuple[str, bytes]]:
    """All that is readable of a stack: what was printed, its files, and every secret of its states, decrypted.

    States are those of the present, of history and of backups. Left out is the tmpfs, where keys belong: pods' mounts,
    the deployer's own.
    """
    for name, text in printed.items():
        yield name, text if isinstance(text, bytes) else text.encode()
    states = _StateSecrets(stack)
    for file in sorted(stack.root.rglob("*")):
        if file.is_symlink() or not file.is_file() or file.is_relative_to(stack.state / "run"):
            continue
        content = _read(file)
        yield str(file.relative_to(stack.root)), content
        if secrets := states.decrypted(content):
            yield f"{file.relative_to(stack.root)}, decrypted", secrets


@contextmanager
def watched_processes(stack: LocalStack) -> Iterator[set[bytes]]:
    """Command lines and environments of every process of the stack that runs for longer than a tenth of a second.

    They are noted until the block ends. A process is the stack's if its environment names the stack's directory.
    """
    seen: set[bytes] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE):
            for process in Path("/proc").glob("[0-9]*"):
                # It may end at any moment, or be somebody else's.
                with suppress(OSError):
                    environment = (process / "environ").read_bytes()
                    if bytes(stack.root) in environment:
                        seen.update((environment, (process / "cmdline").read_bytes()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


class _StateSecrets:
    """Decrypts the secrets in state files with the local stack's passphrase."""

    def __init__(self, stack: LocalStack) -> None:
        self._passphrase = (stack.state / "pulumi/passphrase").read_bytes().strip()

    def decrypted(self, content: bytes) -> bytes:
        """Every secret of a file that names its salt, one a line; empty for other files."""
        text = _unpacked(content).decode(errors="replace")
        ciphers = [_cipher(self._passphrase, salt) for salt in sorted(set(_SALT.findall(text)))]
        values = {
            value
            for nonce, sealed in set(_CIPHERTEXT.findall(text))
            for cipher in ciphers
            if (value := _opened(cipher, nonce, sealed)) is not None
        }
        return b"\n".join(sorted(values))


@cache
def _cipher(passphrase: bytes, salt: str) -> AESGCM:
    return AESGCM(PBKDF2HMAC(SHA256(), 32, base64.b64decode(salt), _ITERATIONS).derive(passphrase))


def _opened(cipher: AESGCM, nonce: str, sealed: str) -> bytes | None:
    try:
        return cipher.decrypt(base64.b64decode(nonce), base64.b64decode(sealed), None)
    except (InvalidTag, ValueError):
        return None


def _unpacked(content: bytes) -> bytes:
    """What a gzip file holds, as far as it goes: a loss of power cuts some short. Other content as it is."""
    unpacked = b""
    while content.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # with a header of gzip's
        unpacked += member.decompress(content)
        content = member.unused_data
    return unpacked + content


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:  # replaced by a process that goes on
        return b""


def _key_of(stored: str) -> Key:
    """The private key of a credential document, in any `objectEncoding` of the vault, a signing key in PEM, or the key
    of etcd in base64.
    """
    if len(stored) == _LENGTH_OF_ETCDS_KEY:
        return base64.b64decode(stored, validate=True)
    is_key = stored.startswith("-----BEGIN")
    bundle = stored.encode() if is_key else base64.b64decode(_document(stored)["client_secret"])
    if b"-----BEGIN" in bundle:
        key = load_pem_private_key(bundle, None)
    else:
        loaded = pkcs12.load_pkcs12(bundle, None).key
        assert loaded is not None
        key = loaded
    assert isinstance(key, RSAPrivateKey)
    return key


def _document(stored: str) -> dict[str, str]:
    for decoded in (str.encode, bytes.fromhex, base64.b64decode):
        with suppress(ValueError, binascii.Error):
            document: dict[str, str] = json.loads(decoded(stored))
            return document
    raise AssertionError("a secret of the vault is no credential document")


def _windows(key: RSAPrivateKey) -> Iterator[bytes]:
    """What only this private key has, in every form; nothing of it is in its certificate."""
    numbers = key.private_numbers()
    secret = [numbers.d, numbers.p, numbers.q, numbers.dmp1, numbers.dmq1, numbers.iqmp]
    for number in secret:
        raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
        yield from _middle(str(number).encode())
        for piece in (raw[8:80], raw[-80:-8]):
            yield from _encoded(piece)
    for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL):
        der = key.private_bytes(Encoding.DER, form, NoEncryption())
        first = der.index(numbers.d.to_bytes((numbers.d.bit_length() + 7) // 8, "big"))
        lines = base64.b64encode(der)
        for begin in range(-(-first * 4 // 3 // _LINE) * _LINE, len(lines) - _LINE, _LINE):
            for layer in _layers(lines[begin : begin + _LINE]):
                for text in _layers(layer):
                    yield from _middle(text)


def _forms(raw: bytes) -> Iterator[bytes]:
    """A key of a few bytes in every form, which is looked for whole."""
    for layer in _layers(raw):
        yield from _layers(layer)
        yield layer.translate(bytes.maketrans(b"+/", b"-_"))


def _encoded(raw: bytes) -> Iterator[bytes]:
    """Raw bytes as they are, in hexadecimal, and in base64 of either alphabet, which may be encoded once more."""
    for layer in _layers(raw):
        for text in _layers(layer):
            yield from _middle(text)
        yield from _middle(layer.translate(bytes.maketrans(b"+/", b"-_")))


def _layers(text: bytes) -> Iterator[bytes]:
    """`text` as it is, and its encodings; the same whatever stands before it."""
    yield text
    yield text.hex().encode()
    yield text.hex().upper().encode()
    for offset in range(3):
        yield base64.b64encode(bytes(offset) + text)[4:-4]


def _middle(text: bytes) -> Iterator[bytes]:
    """Windows at as many places in a row as lie between two that are looked at."""
    first = (len(text) - _WINDOW - _STEP) // 2
    for begin in range(first, first + _STEP):
        yield text[begin : begin + _WINDOW]
